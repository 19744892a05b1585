package lab

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// troubled is an error with what to do about it.
type troubled struct {
	error
	do string
}

// Error is what happened, and what to do.
func (t *troubled) Error() string { return t.error.Error() + ": " + t.do }

// Unwrap is the error alone.
func (t *troubled) Unwrap() error { return t.error }

// What to do where the cluster is not as it should be. Why a server does not answer, only a person can find out.
const (
	doGone     = "does the cluster still run, and is it reached from here?"
	doStorage  = "does etcd still run, and is it reached from here?"
	doIdentity = "the cluster does not accept the credentials any more: get new ones, and start the lab again where it does not take them up"
	doRights   = "these credentials lack that right: ask whoever runs the cluster for it"
	doBusy     = "the server has too much to do: give it a moment"
	doServer   = "the server is there and cannot answer yet: give it a moment"
)

// advise adds to an error what to do about it, as far as the cluster is the reason, and not what was asked of it: by the
// error, or by the last of some exchanges.
func advise(err error, xs []evidence.Exchange) error {
	if err == nil || errors.As(err, new(*troubled)) {
		return err
	}
	do := remedy(err)
	for i := len(xs) - 1; i >= 0 && do == ""; i-- {
		if xs[i].Actor == evidence.ByStep {
			do = byStatus(xs[i].Status)
			break
		}
	}
	if do == "" {
		return err
	}
	return &troubled{err, do}
}

func remedy(err error) string {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, evidence.ErrNoAnswer), errors.Is(err, cluster.ErrBroken), errors.As(err, new(*url.Error)):
		return doGone
	case errors.Is(err, storage.ErrUnanswered):
		return doStorage
	case errors.As(err, &status):
		return byStatus(int(status.Status().Code))
	}
	return ""
}

func byStatus(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return doIdentity
	case http.StatusForbidden:
		return doRights
	case http.StatusTooManyRequests:
		return doBusy
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return doServer
	}
	return ""
}

// unanswered says whether an action failed because of the cluster, so that nothing is to be judged by it.
func unanswered(err error) bool { return errors.As(err, new(*troubled)) }
