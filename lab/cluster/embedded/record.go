package embedded

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/crdlab/crdlab/lab/cluster"
)

const (
	// requestsPath streams what others ask of the API server, one JSON object a line, from the answer's header on.
	requestsPath = "/crdlab/requests"
	// backlog is how many requests a subscriber may lag behind; beyond that it misses some, for it must not hold up
	// whoever sends them.
	backlog = 1024
)

// recorder records the requests of others than the lab, while somebody subscribes to them. It outlives the API servers.
type recorder struct {
	mu   sync.Mutex
	subs map[chan cluster.Request]struct{}
}

func newRecorder() *recorder { return &recorder{subs: map[chan cluster.Request]struct{}{}} }

func (r *recorder) subscribe() chan cluster.Request {
	sub := make(chan cluster.Request, backlog)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subs[sub] = struct{}{}
	return sub
}

func (r *recorder) unsubscribe(sub chan cluster.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.subs, sub)
}

func (r *recorder) subscribed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.subs) > 0
}

func (r *recorder) publish(request cluster.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for sub := range r.subs {
		select {
		case sub <- request:
		default:
		}
	}
}

// ServeHTTP streams to one subscriber. The header tells it that from now on it misses nothing.
func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	sub := r.subscribe()
	defer r.unsubscribe(sub)
	w.Header().Set("Content-Type", "application/jsonl")
	w.WriteHeader(http.StatusOK)
	flusher, lines := http.NewResponseController(w), json.NewEncoder(w)
	for {
		if err := flusher.Flush(); err != nil {
			return
		}
		select {
		case recorded := <-sub:
			if err := lines.Encode(recorded); err != nil {
				return
			}
		case <-request.Context().Done():
			return
		}
	}
}

// wrap records what goes through next. It stands around the whole handler chain, so that it sees refusals of every kind.
func (r *recorder) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get(cluster.ActorHeader) != "" || noise(request) || !r.subscribed() {
			next.ServeHTTP(w, request)
			return
		}
		rec := &recording{ResponseWriter: w, request: request, at: time.Now(), publish: r.publish}
		copied := request.WithContext(request.Context()) // the server still needs the body of its own
		copied.Body = &recordedBody{ReadCloser: request.Body, rec: rec}
		defer rec.end() // also where the chain panics to cut the connection
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(rec), copied)
	})
}

// noise tells the requests that clients send to find their way; they say nothing about what somebody does.
func noise(r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if strings.HasPrefix(path, "/crdlab/") {
		return true
	}
	if r.Method != http.MethodGet {
		return false
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch parts[0] {
	case "", "openapi", "version", "readyz", "healthz", "livez":
		return true
	case "api": // /api, /api/v1, and the namespaces below it
		return len(parts) <= 2 || parts[2] == "namespaces"
	case "apis": // /apis, /apis/GROUP, /apis/GROUP/VERSION
		return len(parts) <= 3
	}
	return false
}

// recording is one request in the making. Handlers that were given up may go on reading and writing after the answer, so
// everything that changes is guarded.
type recording struct {
	http.ResponseWriter
	request *http.Request
	at      time.Time
	publish func(cluster.Request)

	mu             sync.Mutex
	body, response capped
	status         int
	done           bool
}

var _ responsewriter.UserProvidedDecorator = &recording{}

// Unwrap gives the writer below, for what it can do besides.
func (r *recording) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader notes the status. A watch is recorded at once: it has no end of its own.
func (r *recording) WriteHeader(status int) {
	r.header(status)
	r.ResponseWriter.WriteHeader(status)
}

// Write keeps the beginning of the answer.
func (r *recording) Write(p []byte) (int, error) {
	r.header(http.StatusOK)
	r.mu.Lock()
	if !r.done {
		r.response.add(p, kept(r.status))
	}
	r.mu.Unlock()
	return r.ResponseWriter.Write(p)
}

// Flush sends the header if nothing else did.
func (r *recording) Flush() {
	r.header(http.StatusOK)
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (r *recording) header(status int) {
	r.mu.Lock()
	first := r.status == 0 && status >= http.StatusOK // those below announce another header
	if first {
		r.status = status
	}
	r.mu.Unlock()
	if first && status == http.StatusOK && watches(r.request) {
		r.end()
	}
}

func watches(r *http.Request) bool {
	q := r.URL.Query().Get("watch")
	return q == "true" || q == "1"
}

// end publishes the recording, once.
func (r *recording) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return
	}
	r.done = true
	if r.status == 0 && r.request.Context().Err() == nil {
		r.status = http.StatusOK // what the server answers for a handler that says nothing
	}
	header := r.Header()
	r.publish(cluster.Request{
		At:          r.at,
		Method:      r.request.Method,
		Path:        r.request.URL.RequestURI(),
		ContentType: r.request.Header.Get("Content-Type"),
		UserAgent:   r.request.UserAgent(),
		Body:        r.body.bytes,
		Status:      r.status,
		Response:    plain(r.response.bytes, header.Get("Content-Encoding"), kept(r.status)),
		Warnings:    cluster.WarningTexts(header.Values("Warning")),
		Duration:    time.Since(r.at),
	})
}

// plain undoes the compression of long answers, as far as they were kept.
func plain(body []byte, encoding string, most int64) []byte {
	if encoding != "gzip" {
		return body
	}
	unzip, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	// The end is usually missing, which is an error, but what came before it is good.
	out, _ := io.ReadAll(io.LimitReader(unzip, most))
	return out
}

type recordedBody struct {
	io.ReadCloser
	rec *recording
}

// Read keeps the beginning of what the API server reads.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.rec.mu.Lock()
	defer b.rec.mu.Unlock()
	if !b.rec.done {
		b.rec.body.add(p[:n], cluster.MaxRecordedBody)
	}
	return n, err
}

// kept is how much is kept of an answer.
func kept(status int) int64 {
	if status >= http.StatusBadRequest {
		return cluster.MaxRecordedRefusal
	}
	return cluster.MaxRecordedBody
}

// capped keeps the first bytes.
type capped struct {
	bytes []byte
}

func (c *capped) add(p []byte, most int64) {
	c.bytes = append(c.bytes, p[:min(int64(len(p)), most-int64(len(c.bytes)))]...)
}
