package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/crdlab/crdlab/lab/cluster"
)

// WatchEvent is one event of a watch.
type WatchEvent struct {
	Type   string          `json:"type"` // ADDED, MODIFIED, DELETED, BOOKMARK or ERROR
	Object json.RawMessage `json:"object"`
}

// Watch is a watch that was asked for. It is not recorded.
type Watch struct {
	Response                   // the answer's head; its body only where the watch was refused
	Events   <-chan WatchEvent // closed when the watch ends; nil where it was refused
}

// openWatch asks for a watch of a collection. It has no time limit but the context.
func (c *Client) openWatch(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	asked := url.Values{"watch": {"true"}}
	maps.Copy(asked, query)
	u.RawQuery = asked.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", path, err)
	}
	req.Header.Set("Accept", JSON)
	req.Header.Set(cluster.ActorHeader, string(c.actor))
	endless := *c.http
	endless.Timeout = 0
	resp, err := endless.Do(req)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w: %w", path, ErrNoAnswer, err)
	}
	return resp, nil
}

// WatchEnds opens a watch of a collection, and returns a channel that is closed when the server ends it. The context
// ends it as well.
func (c *Client) WatchEnds(ctx context.Context, path string) (<-chan struct{}, error) {
	resp, err := c.openWatch(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { // ends with the watch, which ends with the context at the latest
		defer close(ended)
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	return ended, nil
}

// Watch opens a watch of a collection and reads its events until the context ends or the server ends it. The error is for
// a request that got no answer.
func (c *Client) Watch(ctx context.Context, path string, query url.Values) (*Watch, error) {
	resp, err := c.openWatch(ctx, path, query)
	if err != nil {
		return nil, err
	}
	w := &Watch{Response: Response{Exchange: Exchange{Actor: c.actor, Method: http.MethodGet, Path: path + "?" + resp.Request.URL.RawQuery, Status: resp.StatusCode, Warnings: warnings(resp.Header)}}}
	if w.Refused() {
		defer resp.Body.Close()
		if w.Body, err = io.ReadAll(resp.Body); err != nil {
			return nil, fmt.Errorf("watch %s: %w", path, err)
		}
		w.understand(w.Body)
		return w, nil
	}
	events := make(chan WatchEvent)
	w.Events = events
	go func() { // ends with the watch, which ends with the context at the latest
		defer close(events)
		defer resp.Body.Close()
		for decoder := json.NewDecoder(resp.Body); ; {
			var e WatchEvent
			if decoder.Decode(&e) != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w, nil
}
