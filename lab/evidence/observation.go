// Package evidence collects what a lab may speak of: the exchanges with the API server, and observations of the CRD,
// the views of its objects and their stored values. Whatever a lesson says is read from here; nothing in here is made
// up by the lesson.
package evidence

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/crdlab/crdlab/lab/storage"
)

// Observation is everything seen at one moment. It is never changed after it was published; observations may share
// parts.
type Observation struct {
	After          string    `json:"after,omitempty"` // in a report: "before", the id of the action it follows, or "settled"
	At             time.Time `json:"-"`
	Revision       int64     `json:"revision"` // of etcd: all changes up to it are in
	CRD            *CRD      `json:"crd,omitempty"`
	Stored         Stored    `json:"stored"`
	ObjectsOmitted int       `json:"objectsOmitted,omitempty"`
	Objects        []*Object `json:"objects"` // by key; at most MaxObjects
}

// MaxObjects is how many objects an observation holds whole. The counts are always of all.
const MaxObjects = 50

// CRD is what the API server says of the definition.
type CRD struct {
	Name            string            `json:"name"`
	UID             string            `json:"uid"`
	Generation      int64             `json:"generation"`
	Strategy        string            `json:"strategy"`
	Versions        []Version         `json:"versions"`
	StoredVersions  []string          `json:"storedVersions"`
	Conditions      map[string]string `json:"conditions,omitempty"` // type: status, with the reason where it is not True, or Terminating
	Terminating     bool              `json:"terminating,omitempty"`
	Labels          map[string]string `json:"-"`
	ResourceVersion string            `json:"-"`
}

// Version is one entry of spec.versions.
type Version struct {
	Name               string   `json:"name"`
	Served             bool     `json:"served"`
	Storage            bool     `json:"storage"`
	Deprecated         bool     `json:"deprecated"`
	DeprecationWarning string   `json:"deprecationWarning,omitempty"`
	Fields             []string `json:"-"` // the names of the schema's fields under spec, sorted
}

// Stored counts the objects by stored version, from their bytes.
type Stored struct {
	Access    bool           `json:"access"`
	Reason    string         `json:"reason,omitempty"` // why there is no access, where that is known
	Total     int            `json:"total"`
	ByVersion map[string]int `json:"byVersion"`
}

// Missing says that the stored values cannot be read, and why, as far as that is known.
func (s Stored) Missing() string {
	out := "the stored values cannot be read on this cluster"
	if s.Reason != "" {
		out += ": " + s.Reason
	}
	return out
}

// Object is one object: its view at every version in spec.versions, its stored value and its managers.
type Object struct {
	Namespace       string           `json:"namespace,omitempty"`
	Name            string           `json:"name"`
	UID             string           `json:"-"`
	ResourceVersion string           `json:"resourceVersion"`
	Views           map[string]*View `json:"views"`
	Stored          *Value           `json:"stored,omitempty"`
	Managers        []Manager        `json:"managers"`
}

// View is an object as read at one version.
type View struct {
	Status  int             `json:"status"`
	Object  json.RawMessage `json:"object,omitempty"`
	Message string          `json:"message,omitempty"`
}

// Value is the stored value of an object.
type Value struct {
	Key         string          `json:"key"`
	APIVersion  string          `json:"apiVersion"`
	ModRevision int64           `json:"modRevision"`
	Size        int             `json:"size"` // bytes
	Value       json.RawMessage `json:"value"`
}

// Manager is one entry of managedFields.
type Manager struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	Subresource string          `json:"subresource,omitempty"`
	APIVersion  string          `json:"apiVersion"`
	Time        string          `json:"time,omitempty"`
	Fields      json.RawMessage `json:"-"` // fieldsV1
}

// Version returns the entry of a version; nil where spec.versions has none, or there is no CRD.
func (o *Observation) Version(name string) *Version {
	if o == nil || o.CRD == nil {
		return nil
	}
	for i := range o.CRD.Versions {
		if o.CRD.Versions[i].Name == name {
			return &o.CRD.Versions[i]
		}
	}
	return nil
}

// StorageVersion is what the CRD says the next write will use; empty where there is no CRD.
func (o *Observation) StorageVersion() string {
	if o == nil || o.CRD == nil {
		return ""
	}
	for _, v := range o.CRD.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// StoredVersions is the CRD's record; nil where there is no CRD.
func (o *Observation) StoredVersions() []string {
	if o == nil || o.CRD == nil {
		return nil
	}
	return o.CRD.StoredVersions
}

// Lists says whether storedVersions names a version.
func (o *Observation) Lists(version string) bool { return slices.Contains(o.StoredVersions(), version) }

// Object returns an object by name; nil where it is not held.
func (o *Observation) Object(name string) *Object {
	if o == nil {
		return nil
	}
	for _, x := range o.Objects {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// View returns an object's view at a version; nil where there is none.
func (o *Object) View(version string) *View {
	if o == nil {
		return nil
	}
	return o.Views[version]
}

// StoredVersion is the version inside an object's bytes; empty where they are not known.
func (o *Object) StoredVersion() string {
	if o == nil || o.Stored == nil {
		return ""
	}
	return (&storage.Value{APIVersion: o.Stored.APIVersion}).Version()
}

// Field reads a field of a view, for example Field("spec", "tier"); false where the view has none, or is an error.
func (v *View) Field(path ...string) (any, bool) {
	if v == nil || v.Status != 200 {
		return nil, false
	}
	return field(v.Object, path)
}

// Field reads a field of the stored bytes.
func (v *Value) Field(path ...string) (any, bool) {
	if v == nil {
		return nil, false
	}
	return field(v.Value, path)
}

func field(raw json.RawMessage, path []string) (any, bool) {
	var at any
	if json.Unmarshal(raw, &at) != nil {
		return nil, false
	}
	for _, p := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[p]; !ok {
			return nil, false
		}
	}
	return at, true
}
