package cluster

import (
	"errors"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// ErrBroken says that the connection to the API server broke off before an answer was there.
var ErrBroken = errors.New("the connection to the API server broke off")

// actor marks requests of clients that were made from a Config and that nobody marked.
const actor = "lab"

// OwnConfig makes a config one for the lab's own clients: without rate limit, without retries that nobody asked for,
// without warnings on standard error. Requests that carry no actor are marked as the lab's, and so are not taken for
// somebody else's. It returns the config that it was given.
func OwnConfig(c *rest.Config) *rest.Config {
	c.UserAgent = "crdlab"
	c.QPS = -1
	c.WarningHandler = rest.NoWarnings{}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return ownTransport{next} })
	return c
}

// ownTransport marks requests as the lab's, and takes away by what client-go knows that it would like to retry.
type ownTransport struct {
	next http.RoundTripper
}

// RoundTrip sends one request and nothing more.
func (t ownTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get(ActorHeader) == "" {
		r = r.Clone(r.Context())
		r.Header.Set(ActorHeader, actor)
	}
	response, err := t.next.RoundTrip(r)
	if response != nil {
		// client-go repeats a 429 or 5xx by itself where this header stands, and waits before it.
		response.Header.Del("Retry-After")
	}
	if err != nil && (utilnet.IsProbableEOF(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err)) {
		return nil, ErrBroken // client-go would repeat it ten times, a second apart, knowing it for what it is
	}
	return response, err
}
