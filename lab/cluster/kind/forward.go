package kind

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// forward connects to a port of a pod through the API server, as kubectl port-forward does, but without a port on this
// machine that others could use. The context is for the connecting alone.
func forward(ctx context.Context, config *rest.Config, namespace, pod string, port int) (net.Conn, error) {
	to := fmt.Sprintf("%s/%s port %d", namespace, pod, port)
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("forward to %s: %w", to, err)
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("the server's address %q: %w", config.Host, err)
	}
	address = address.JoinPath("api/v1/namespaces", namespace, "pods", pod, "portforward")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("forward to %s: %w", to, err)
	}
	type result struct {
		conn *forwarded
		err  error
	}
	done := make(chan result)
	go func() { // only its dialling heeds the context; it ends at the latest when the connection does
		conn, err := negotiate(upgrader, &http.Client{Transport: transport}, request, port)
		select {
		case done <- result{conn, err}:
		case <-ctx.Done(): // nobody waits for it any more
			if err == nil {
				conn.Close()
			}
		}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("forward to %s: %w", to, r.err)
		}
		return r.conn, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("forward to %s: %w", to, context.Cause(ctx))
	}
}

// negotiate opens the two streams that make a forwarded connection: one for data, one on which errors are told.
func negotiate(upgrader spdy.Upgrader, client *http.Client, request *http.Request, port int) (*forwarded, error) {
	conn, _, err := spdy.NegotiateStreaming(upgrader, client, request, portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	complaints, err := conn.CreateStream(headers)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("open the stream for errors: %w", err)
	}
	complaints.Close() // for writing
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("open the stream for data: %w", err)
	}
	f := &forwarded{Stream: data, conn: conn}
	go f.listen(complaints)
	return f, nil
}

// forwarded is a connection through the API server.
type forwarded struct {
	httpstream.Stream
	conn httpstream.Connection

	mu  sync.Mutex
	err error // what the other end has told
}

var _ net.Conn = &forwarded{}

// listen ends with the connection, and ends it when the other end tells an error.
func (f *forwarded) listen(complaints io.Reader) {
	text, err := io.ReadAll(complaints)
	if err != nil || len(text) == 0 {
		return // it was closed, by whichever side
	}
	f.mu.Lock()
	f.err = fmt.Errorf("the forwarding has ended: %s", text)
	f.mu.Unlock()
	f.Close()
}

// Read reads what the pod has sent. When the connection has ended, the error is why, where that is known.
func (f *forwarded) Read(p []byte) (int, error) {
	n, err := f.Stream.Read(p)
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.err != nil {
			err = f.err
		}
	}
	return n, err
}

// Close ends the connection to the API server as well: it is used for this one alone.
func (f *forwarded) Close() error {
	_ = f.Stream.Reset()
	return f.conn.Close()
}

// LocalAddr and RemoteAddr are names only.
func (f *forwarded) LocalAddr() net.Addr  { return forwardedAddr{} }
func (f *forwarded) RemoteAddr() net.Addr { return forwardedAddr{} }

type forwardedAddr struct{}

// Network and String say what it is.
func (forwardedAddr) Network() string { return "portforward" }
func (forwardedAddr) String() string  { return "portforward" }

// SetDeadline and the other two do nothing: the streams know no deadlines, and who waits here closes instead.
func (f *forwarded) SetDeadline(time.Time) error      { return nil }
func (f *forwarded) SetReadDeadline(time.Time) error  { return nil }
func (f *forwarded) SetWriteDeadline(time.Time) error { return nil }
