package lab

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/storage"
)

// DefaultGroup is the API group of a lab without a learner's name.
const DefaultGroup = "lab.example.com"

// DefaultNamespace is where a lab without a learner's name keeps its objects.
const DefaultNamespace = "crdlab"

// maxLearner is how long a name may be, so that it fits into that of a namespace, which is one label of DNS.
const maxLearner = validation.DNS1123LabelMaxLength - len(DefaultNamespace) - 1

// CheckLearner refuses a name from which no API group and no namespace can be made. None is no error.
func CheckLearner(name string) error {
	if name == "" {
		return nil
	}
	if len(name) > maxLearner || len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("%q cannot be a learner's name, which becomes part of an API group: at most %d of a-z, 0-9 and -, a letter or digit at both ends, for example %s",
			name, maxLearner, example(name))
	}
	return nil
}

// example is a good name, made of a bad one as far as it goes.
func example(bad string) string {
	good := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, strings.ToLower(bad))
	good = strings.Trim(good[:min(len(good), maxLearner)], "-")
	if good == "" {
		return "ana"
	}
	return good
}

// Group is the API group of a learner.
func Group(learner string) string {
	if learner == "" {
		return DefaultGroup
	}
	return learner + "." + DefaultGroup
}

// Namespace is where a learner's objects are.
func Namespace(learner string) string {
	if learner == "" {
		return DefaultNamespace
	}
	return DefaultNamespace + "-" + learner
}

// Scope is what belongs to a learner's lab of a track on a cluster. It has an owner where the learner has a name, or others
// may use the cluster too: then it belongs to this user.
func Scope(track *lesson.Track, learner string, on cluster.Info) (cluster.Scope, error) {
	s := cluster.Scope{Resource: storage.Resource{Group: Group(learner), Plural: track.Plural}, Namespace: Namespace(learner),
		Learner: learner, Versions: track.Versions}
	if learner == "" && !on.Shared {
		return s, nil
	}
	var err error
	s.Owner, err = cluster.OwnerID()
	return s, err
}
