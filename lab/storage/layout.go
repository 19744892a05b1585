package storage

import (
	"bytes"
	"cmp"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// layout is the prefix of an API server's keys, from which all others follow as kube-apiserver lays them out.
type layout string

func newLayout(prefix string) layout {
	return layout(strings.TrimSuffix(cmp.Or(prefix, "/registry"), "/"))
}

// objects is the prefix of the keys of a resource's objects.
func (l layout) objects(r Resource) string { return string(l) + "/" + r.Group + "/" + r.Plural + "/" }

// object is the key of one object; namespace is empty for a resource without namespaces.
func (l layout) object(r Resource, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return l.objects(r) + name
}

// definition is the key of a resource's CRD.
func (l layout) definition(r Resource) string {
	return string(l) + "/apiextensions.k8s.io/customresourcedefinitions/" + r.String()
}

func (l layout) value(r Resource, key, data []byte, created, modified int64) (*Value, error) {
	v, err := parse(string(key), l.objects(r), data)
	if err != nil {
		return nil, err
	}
	v.CreateRevision, v.ModRevision = created, modified
	return v, nil
}

// changes makes changes of the events of a watch of a resource's objects.
func (l layout) changes(r Resource, events []*clientv3.Event) ([]Change, error) {
	out := make([]Change, 0, len(events))
	for _, ev := range events {
		c := Change{Key: string(ev.Kv.Key), Deleted: ev.Type == clientv3.EventTypeDelete}
		var err error
		if !c.Deleted {
			if c.Value, err = l.value(r, ev.Kv.Key, bytes.Clone(ev.Kv.Value), ev.Kv.CreateRevision, ev.Kv.ModRevision); err != nil {
				return nil, err
			}
		}
		if ev.PrevKv != nil {
			if c.Was, err = l.value(r, ev.PrevKv.Key, ev.PrevKv.Value, ev.PrevKv.CreateRevision, ev.PrevKv.ModRevision); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
	}
	return out, nil
}
