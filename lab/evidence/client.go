package evidence

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/storage"
)

// Content types of patches.
const (
	JSONPatch  = "application/json-patch+json"
	MergePatch = "application/merge-patch+json"
	ApplyPatch = "application/apply-patch+yaml"
	JSON       = "application/json"
)

// answerTimeout is how long one answer may take, where the config does not say. An API server gives a request up after a
// minute: what takes longer was lost on the way.
const answerTimeout = 70 * time.Second

// ErrNoAnswer says that a request got no answer, or not the whole of one: whether the server has done what it was asked
// for is not known.
var ErrNoAnswer = errors.New("no answer")

// Client sends requests to an API server, one HTTP request a call, and records each in a Log. It never repeats a
// request by itself: a 429 is an answer like any other.
type Client struct {
	base  *url.URL
	http  *http.Client // its timeout is that of one answer
	log   *Log
	actor Actor
	waits *waits
}

// NewClient makes a client that acts as a step. The config's own transport settings hold.
func NewClient(config *rest.Config, log *Log) (*Client, error) {
	hc, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare a client for %s: %w", config.Host, err)
	}
	base, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("the server's address %q: %w", config.Host, err)
	}
	bounded := *hc // the one of the config may be shared
	if bounded.Timeout == 0 {
		bounded.Timeout = answerTimeout
	}
	return &Client{base: base, http: &bounded, log: log, actor: ByStep, waits: newWaits()}, nil
}

// As returns the same client, acting for somebody else.
func (c *Client) As(actor Actor) *Client {
	as := *c
	as.actor = actor
	return &as
}

// Unrecorded returns the same client without its log: for reads whose number would fill it.
func (c *Client) Unrecorded() *Client {
	as := *c
	as.log = nil
	return &as
}

// Close ends the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Request is one request to be sent.
type Request struct {
	Method      string
	Path        string // absolute, without a query
	Query       url.Values
	ContentType string // of the body
	Accept      string // JSON where empty
	Body        []byte
}

// Response is an answer of the server, whatever its status.
type Response struct {
	Exchange
	Body []byte
}

// Do sends a request. The error is for requests that got no answer and is an ErrNoAnswer; an answer of 400 and more is in
// Response.Err.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + r.Path
	u.RawQuery = r.Query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	if r.ContentType != "" {
		req.Header.Set("Content-Type", r.ContentType)
	}
	req.Header.Set("Accept", JSON)
	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}
	req.Header.Set(cluster.ActorHeader, string(c.actor))
	x := Exchange{At: time.Now(), Actor: c.actor, Method: r.Method, Path: r.Path, ContentType: r.ContentType, Body: string(cut(r.Body))}
	if u.RawQuery != "" {
		x.Path += "?" + u.RawQuery
	}
	answered := c.waits.begin(Waiting{Actor: c.actor, Method: r.Method, Path: r.Path, Since: x.At})
	body, err := c.send(req, &x)
	answered()
	x.DurationMS = milliseconds(time.Since(x.At))
	if err != nil {
		x.Message = err.Error()
	}
	x.understand(body)
	x.Response = string(cut(body))
	if c.log != nil {
		x = c.log.Add(x)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", x.Method, x.Path, ErrNoAnswer, err)
	}
	return &Response{Exchange: x, Body: body}, nil
}

func (c *Client) send(req *http.Request, x *Exchange) ([]byte, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unanswered(req, x, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("in the middle of it: %w", c.unanswered(req, x, err))
	}
	x.Status, x.Warnings = resp.StatusCode, warnings(resp.Header)
	return body, nil
}

// unanswered says in words for people why there is no answer.
func (c *Client) unanswered(req *http.Request, x *Exchange, err error) error {
	if of := new(url.Error); errors.As(err, &of) { // its text repeats the whole address
		err = of.Err
	}
	var slow net.Error
	switch {
	case req.Context().Err() != nil:
		return err
	case errors.As(err, &slow) && slow.Timeout() && time.Since(x.At) >= c.http.Timeout:
		return fmt.Errorf("the API server has not answered within %s", c.http.Timeout)
	case utilnet.IsProbableEOF(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err):
		return cluster.ErrBroken
	}
	return err
}

// Err is nil for an answer below 400, else the server's Status as an error that apierrors understands.
func (r *Response) Err() error {
	if !r.Refused() {
		return nil
	}
	var s metav1.Status
	if json.Unmarshal(r.Body, &s) == nil && s.Kind == "Status" {
		return fmt.Errorf("%s %s: %w", r.Method, r.Path, &apierrors.StatusError{ErrStatus: s})
	}
	e := apierrors.NewGenericServerResponse(r.Status, r.Method, schema.GroupResource{}, "", r.Message, 0, true)
	return fmt.Errorf("%s %s: %w", r.Method, r.Path, e)
}

// Elsewhere says that a refusal is not about what was asked for: the server does not know who asks, does not let them,
// or cannot answer anybody at the moment.
func (r *Response) Elsewhere() bool {
	switch r.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Get reads a path.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (*Response, error) {
	return c.Do(ctx, Request{Method: http.MethodGet, Path: path, Query: query})
}

// Create sends a POST of JSON to a collection.
func (c *Client) Create(ctx context.Context, path, manager string, body []byte) (*Response, error) {
	return c.Do(ctx, Request{Method: http.MethodPost, Path: path, Query: fieldManager(manager), ContentType: JSON, Body: body})
}

// Patch sends a patch of the content type given. An empty manager leaves the choice of its name to the server.
func (c *Client) Patch(ctx context.Context, path, contentType, manager string, body []byte) (*Response, error) {
	return c.Do(ctx, Request{Method: http.MethodPatch, Path: path, Query: fieldManager(manager), ContentType: contentType, Body: body})
}

// Apply is a server-side apply: the body is the whole of what the manager wants. With force, it takes the fields that
// others own.
func (c *Client) Apply(ctx context.Context, path, manager string, force bool, body []byte) (*Response, error) {
	q := fieldManager(manager)
	if force {
		q.Set("force", "true")
	}
	return c.Do(ctx, Request{Method: http.MethodPatch, Path: path, Query: q, ContentType: ApplyPatch, Body: body})
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, path string) (*Response, error) {
	return c.Do(ctx, Request{Method: http.MethodDelete, Path: path})
}

func fieldManager(name string) url.Values {
	q := url.Values{}
	if name != "" {
		q.Set("fieldManager", name)
	}
	return q
}

// DefinitionPath is where the API serves the CRD of a resource.
func DefinitionPath(r storage.Resource) string {
	return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + r.String()
}

// DefinitionsPath is where the API serves all CRDs.
const DefinitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// CollectionPath is where the API serves a resource's objects at a version: all of them where namespace is empty.
func CollectionPath(r storage.Resource, version, namespace string) string {
	if namespace == "" {
		return "/apis/" + r.Group + "/" + version + "/" + r.Plural
	}
	return "/apis/" + r.Group + "/" + version + "/namespaces/" + namespace + "/" + r.Plural
}

// ObjectPath is where the API serves one object at a version.
func ObjectPath(r storage.Resource, version, namespace, name string) string {
	return CollectionPath(r, version, namespace) + "/" + name
}
