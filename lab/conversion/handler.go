package conversion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
)

// handle answers one request. What no API server would send is refused in one line, and is not in the log.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	if c := connectionOf(r.Context()); c != nil && s.outdated(c) {
		w.Header().Set("Connection", "close") // so that the client sees the certificate that is shown now
	}
	began := time.Now()
	body, err := readBody(w, r)
	var in *review
	if err == nil {
		in, err = parseReview(body, s.groups)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	entry := in.entry()
	entry.At = began
	entry.Asked(body)
	out := s.reply(w, r, in, &entry)
	if r.Context().Err() == nil { // else nobody is left to be answered
		entry.Answered([]byte(out.body))
	}
	s.log.Add(entry)
	w.Header().Set("Content-Type", out.contentType)
	w.WriteHeader(out.status)
	_, _ = io.WriteString(w, out.body) // where the client has gone, nobody is left to be told
}

// readBody reads a POST of JSON.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.URL.Path != Path {
		return nil, &refusal{http.StatusNotFound, "conversion requests go to " + Path}
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, &refusal{http.StatusMethodNotAllowed, "a ConversionReview is sent by POST"}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != evidence.JSON {
		return nil, &refusal{http.StatusUnsupportedMediaType, "a ConversionReview is " + evidence.JSON}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("a ConversionReview has at most %d MiB", maxBodyBytes>>20)}
	}
	if err != nil {
		return nil, malformed("the body ended too early")
	}
	return body, nil
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	var r *refusal
	if errors.As(err, &r) {
		status = r.status
	}
	http.Error(w, err.Error(), status)
}

// reply makes the answer to a review, as the fault that is on would have it, and notes the result.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, in *review, entry *evidence.Conversion) reply {
	fault, err := s.await(r.Context(), w)
	if err != nil {
		entry.Result, entry.Message = "no answer", err.Error()
		return reply{http.StatusServiceUnavailable, "text/plain; charset=utf-8", err.Error() + "\n"}
	}
	if fault.replaces != nil {
		entry.Result, entry.Message = fmt.Sprintf("HTTP %d, no ConversionReview", fault.replaces.status), faultMessage(fault)
		return *fault.replaces
	}
	out := s.deployed().answer(in)
	if fault.spoils != nil {
		fault.spoils(fault.Fault, in, out)
	}
	entry.Result, entry.Message = evidence.ConversionSuccess, faultMessage(fault)
	if out.failed {
		entry.Result, entry.Message = evidence.ConversionFailed, out.message
	}
	body, err := out.encode()
	if err != nil { // what was decoded can be encoded
		return reply{http.StatusInternalServerError, "text/plain; charset=utf-8", err.Error() + "\n"}
	}
	return reply{http.StatusOK, evidence.JSON, string(body)}
}

// faultMessage says what a fault did to an answer. Those in the connection and in the CRD leave an answer as it is.
func faultMessage(b behaviour) string {
	if b.waits == nil && b.replaces == nil && b.spoils == nil {
		return ""
	}
	return "fault " + b.ID + ": " + b.Does
}

var (
	errGone    = errors.New("the client did not wait for the answer")
	errClosing = errors.New("the webhook is closing")
)

// await waits as long as a fault has it, and returns the fault that is on then. It ends when the fault is switched off, the
// client goes away or the server closes.
func (s *Server) await(ctx context.Context, w http.ResponseWriter) (behaviour, error) {
	began := time.Now()
	for {
		fault, changed := s.watch()
		if fault.waits == nil {
			return fault, nil
		}
		// The time to read a request is over, and must not end the waiting. A recorder in a test has no deadline.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		over, err := s.hold(ctx, fault, changed, began)
		if over || err != nil {
			return fault, err
		}
	}
}

// hold waits until a fault's delay is over, or something else ends it.
func (s *Server) hold(ctx context.Context, fault behaviour, changed <-chan struct{}, began time.Time) (over bool, err error) {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	var delay <-chan time.Time
	if d, ends := fault.waits(fault.Fault); ends {
		timer := time.NewTimer(d - time.Since(began))
		defer timer.Stop()
		delay = timer.C
	}
	select {
	case <-delay:
		return true, nil
	case <-changed:
		return false, nil
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errClosing) {
			return false, errClosing
		}
		return false, errGone
	}
}
