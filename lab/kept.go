package lab

import (
	"slices"

	"github.com/crdlab/crdlab/lab/evidence"
)

// ends is how many exchanges are kept of the beginning of an action, and of its end. A rewrite of ten thousand objects
// shows how it began and how it ended; its result has the numbers.
const ends = 100

// kept are the exchanges of one action, whatever the log has forgotten meanwhile.
type kept struct {
	action     string
	seq        int // the place in the log up to which they are taken
	head, tail []evidence.Exchange
}

// take adds what the log has gained.
func (k *kept) take(log *evidence.Log) {
	fresh := log.Since(k.seq)
	if len(fresh) == 0 {
		return
	}
	k.seq = fresh[len(fresh)-1].Seq
	for _, x := range visible(fresh) {
		if len(k.head) < ends {
			k.head = append(k.head, x)
		} else {
			k.tail = append(k.tail, x)
		}
	}
	if over := len(k.tail) - ends; over > 0 {
		k.tail = append(k.tail[:0:0], k.tail[over:]...)
	}
}

// exchanges are those of the current step; the lock is held.
func (s *Session) exchanges() []evidence.Exchange {
	s.kept[len(s.kept)-1].take(s.log)
	var out []evidence.Exchange
	for _, k := range s.kept {
		out = append(append(out, k.head...), k.tail...)
	}
	return out
}

// supersede forgets what the last action asked in an earlier attempt and has asked again now: that a request failed then is no
// evidence any more. What it did not ask again, because it was done, stays.
func (s *Session) supersede() {
	last := s.kept[len(s.kept)-1]
	last.take(s.log)
	repeated := func(x evidence.Exchange) bool {
		same := func(y evidence.Exchange) bool {
			return x.Actor == y.Actor && x.Method == y.Method && x.Path == y.Path && x.Body == y.Body
		}
		return x.Actor == evidence.ByStep && (slices.ContainsFunc(last.head, same) || slices.ContainsFunc(last.tail, same))
	}
	for _, k := range s.kept[:len(s.kept)-1] {
		if k.action == last.action {
			k.head, k.tail = slices.DeleteFunc(slices.Clone(k.head), repeated), slices.DeleteFunc(slices.Clone(k.tail), repeated)
		}
	}
}

// visible leaves out the observer's own reads.
func visible(xs []evidence.Exchange) []evidence.Exchange {
	var out []evidence.Exchange
	for _, x := range xs {
		if x.Actor != evidence.ByObserver {
			out = append(out, x)
		}
	}
	return out
}
