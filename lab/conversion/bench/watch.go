package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdlab/crdlab/lab/evidence"
)

// watch opens a watch of one object from the list at the stored version on, writes it through the stored version, and waits
// for the event of that.
func (r *row) watch(ctx context.Context, c *asked) {
	w, err := r.Client.Watch(ctx, r.collection(c.At), url.Values{
		"resourceVersion": {r.listed},
		"fieldSelector":   {"metadata.name=" + c.object},
	})
	if err != nil || w.Refused() {
		var resp *evidence.Response
		if err == nil {
			resp = &w.Response
		}
		c.Status, c.Answer = r.answer(ctx, c, resp, err)
		c.DurationMS = milliseconds(time.Since(c.began))
		return
	}
	c.Status = w.Status
	written := time.Now()
	if err := accepted(r.Client.Do(ctx, r.request(Patch, Stored, c.object))); err != nil {
		c.Answer = "the write at the stored version: " + cause(err.Error(), c.object)
		return
	}
	select {
	case e, open := <-w.Events:
		c.Answer = r.event(c, e, open)
	case <-ctx.Done():
		c.Answer = fmt.Sprintf("no event in %s", inWords(r.Patience))
	}
	c.DurationMS = milliseconds(time.Since(written))
}

func (r *row) event(c *asked, e evidence.WatchEvent, open bool) string {
	switch {
	case !open:
		return "the watch ended without an event"
	case e.Type == "ERROR":
		var s metav1.Status
		if json.Unmarshal(e.Object, &s) != nil {
			return "ERROR event: " + cause(string(e.Object), c.object)
		}
		return fmt.Sprintf("ERROR event: %d %s", s.Code, cause(s.Message, c.object))
	}
	return e.Type + " event, " + r.compare(c, e.Object)
}
