package verdict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
)

const (
	mostNames    = 20  // that one finding lists; the rest is counted
	mostManagers = 50  // that are told apart for one version
	mostTried    = 100 // of the objects of one stored version that are asked about by dry runs
)

// survey is what one pass over all objects has found. Its size does not depend on how many there are.
type survey struct {
	access   bool   // it was made from the bytes
	noAccess string // why it was not
	made     bool   // some pass was made: metadata is known
	revision int64
	total    int
	stored   map[string]*names // objects by stored version
	labelled map[string]*names // objects by the versions that their managedFields name
	managers map[string]map[string]int
	owned    map[string]*names  // objects by the versions at which their ownerReferences name this kind
	samples  map[string]*sample // objects to be asked about, by stored version
}

// names are some objects: how many, and the first of them.
type names struct {
	count int
	first []string
}

func (n *names) add(name string) {
	n.count++
	if len(n.first) < mostNames {
		n.first = append(n.first, name)
	}
}

// lines are the names one a line, and how many more there are.
func (n *names) lines() []string {
	out := slices.Clone(n.first)
	if more := n.count - len(n.first); more > 0 {
		out = append(out, "and "+number(more)+" more")
	}
	return out
}

// of returns the names kept under a version, to be added to.
func of(m map[string]*names, version string) *names {
	if m[version] == nil {
		m[version] = &names{}
	}
	return m[version]
}

func newSurvey() *survey {
	return &survey{stored: map[string]*names{}, labelled: map[string]*names{}, owned: map[string]*names{},
		managers: map[string]map[string]int{}, samples: map[string]*sample{}}
}

// head is what a survey reads of an object's metadata. It leaves out the fields that managers own, which are most of it.
type head struct {
	Metadata struct {
		ManagedFields []struct {
			Manager    string `json:"manager"`
			APIVersion string `json:"apiVersion"`
		} `json:"managedFields"`
		OwnerReferences []struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
}

// surveyBytes goes over all stored values at one revision; where there is no access to them, it says why.
func surveyBytes(ctx context.Context, from storage.Reader, r storage.Resource, kind string) (*survey, error) {
	s := newSurvey()
	if from == nil {
		s.noAccess = "etcd cannot be read from here"
		return s, nil
	}
	var err error
	s.revision, err = from.Range(ctx, r, func(v *storage.Value) error {
		var h head
		if err := json.Unmarshal(v.Data, &h); err != nil {
			return fmt.Errorf("read the metadata in the value of %s: %w", v.Key, err)
		}
		s.add(r, kind, v.Namespace, v.Name, &h)
		of(s.stored, v.Version()).add(fullName(v.Namespace, v.Name))
		s.sample(rewrite.Subject{Namespace: v.Namespace, Name: v.Name, Stored: v.Version(), Bytes: v.Data})
		return nil
	})
	if errors.Is(err, storage.ErrNoAccess) {
		s = newSurvey()
		s.noAccess = err.Error()
		return s, nil
	}
	s.access, s.made = true, true
	return s, err
}

// addListed adds an object of a metadata-only list, whose bytes are not known.
func (s *survey) addListed(r storage.Resource, kind string, m *rewrite.Metadata) {
	var h head
	for _, e := range m.ManagedFields {
		h.Metadata.ManagedFields = append(h.Metadata.ManagedFields, struct {
			Manager    string `json:"manager"`
			APIVersion string `json:"apiVersion"`
		}{e.Manager, e.APIVersion})
	}
	for _, o := range m.OwnerReferences {
		h.Metadata.OwnerReferences = append(h.Metadata.OwnerReferences, struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}{o.APIVersion, o.Kind})
	}
	s.add(r, kind, m.Namespace, m.Name, &h)
	s.sample(rewrite.Subject{Namespace: m.Namespace, Name: m.Name})
}

// sample is every step-th of the objects seen: all of them while they are few, and spread over all where they are many.
type sample struct {
	objects    []rewrite.Subject
	seen, step int
}

func (p *sample) add(o rewrite.Subject) {
	if p.seen%p.step == 0 && len(p.objects) == mostTried {
		for i := range mostTried / 2 {
			p.objects[i] = p.objects[2*i]
		}
		clear(p.objects[mostTried/2:]) // lets go of their bytes
		p.objects = p.objects[:mostTried/2]
		p.step *= 2
	}
	if p.seen%p.step == 0 {
		p.objects = append(p.objects, o)
	}
	p.seen++
}

// sample adds an object to those of its stored version.
func (s *survey) sample(o rewrite.Subject) {
	if s.samples[o.Stored] == nil {
		s.samples[o.Stored] = &sample{step: 1}
	}
	s.samples[o.Stored].add(o)
}

func (s *survey) add(r storage.Resource, kind, namespace, name string, h *head) {
	s.total++
	object := fullName(namespace, name)
	var seen []string
	for _, e := range h.Metadata.ManagedFields {
		v := versionOf(e.APIVersion)
		s.manage(v, e.Manager)
		if !slices.Contains(seen, v) {
			seen = append(seen, v)
			of(s.labelled, v).add(object)
		}
	}
	for _, o := range h.Metadata.OwnerReferences {
		if o.Kind == kind && strings.HasPrefix(o.APIVersion, r.Group+"/") {
			of(s.owned, versionOf(o.APIVersion)).add(object)
		}
	}
}

// manage counts one entry of a manager at a version.
func (s *survey) manage(version, manager string) {
	m := s.managers[version]
	if m == nil {
		m = map[string]int{}
		s.managers[version] = m
	}
	if _, known := m[manager]; !known && len(m) >= mostManagers {
		manager = "others"
	}
	m[manager]++
}

// versions are all versions that anything names, old ones first.
func (s *survey) versions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	all := slices.Concat(slices.Collect(maps.Keys(s.stored)), slices.Collect(maps.Keys(s.labelled)), crd.Status.StoredVersions)
	for _, v := range crd.Spec.Versions {
		all = append(all, v.Name)
	}
	slices.SortFunc(all, version.CompareKubeAwareVersionStrings)
	return slices.Compact(all)
}

func versionOf(apiVersion string) string {
	return apiVersion[strings.LastIndexByte(apiVersion, '/')+1:]
}

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
