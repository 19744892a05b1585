package rewrite

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdlab/crdlab/lab/evidence"
)

const (
	longestWait  = 10 * time.Second // for one answer that asks to wait, whatever it asks for
	patienceEnds = time.Minute      // of waiting for one request; then the answer is taken as it is
)

// patience is how long one request has been waited for already.
type patience time.Duration

// allows says whether to wait once more, and counts it.
func (p *patience) allows(delay time.Duration) bool {
	if time.Duration(*p)+delay > patienceEnds {
		return false
	}
	*p += patience(delay)
	return true
}

// askedToWait says whether the server wants the same request again later, and when.
func askedToWait(resp *evidence.Response) (time.Duration, bool) {
	seconds, asked := apierrors.SuggestsClientDelay(resp.Err())
	if !asked && resp.Status != http.StatusTooManyRequests {
		return 0, false
	}
	return min(time.Duration(max(seconds, 1))*time.Second, longestWait), true
}

// absent says that there is no object of this name. A version that is not served is a 404 as well, but no Status.
func absent(resp *evidence.Response) bool {
	return apierrors.IsNotFound(resp.Err()) && resp.Reason != ""
}

// sleep waits, and ends early with the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stopped says that an error comes of the end of the context, and not of the server.
func stopped(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled)
}
