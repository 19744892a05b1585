package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// conversion: what is stored at one version must come through to the other whole.
func (l *look) conversion() Finding {
	f := Finding{ID: Conversion, Result: Pass}
	if lost := l.lost(); len(lost) > 0 {
		f.Result, f.Summary = Fail, "nothing converts what is stored at "+list(lost)+", which spec.versions lacks"
		f.Remedy = asFor(StoredObjects)
		return f
	}
	if !slices.ContainsFunc(l.drop, func(v string) bool { return l.version(v) != nil }) {
		f.Summary = "nothing is left to convert: the versions to be dropped are not in spec.versions"
		return f
	}
	if c := l.crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		return l.webhook(f)
	}
	return l.none(f)
}

// lost are the stored versions that spec.versions lacks: they were removed too early, or the bytes were restored since.
func (l *look) lost() (out []string) {
	for _, v := range slices.Sorted(maps.Keys(l.survey.stored)) {
		if l.version(v) == nil {
			out = append(out, v)
		}
	}
	return out
}

// webhook judges by the answers: one object of each stored version was read at every served version.
func (l *look) webhook(f Finding) Finding {
	f.Summary = "strategy Webhook: it has converted one object of each stored version to every served version"
	for _, r := range l.reads {
		for _, g := range r.gets {
			answer := "answered"
			if g.err != nil {
				f.Result, answer = Fail, g.err.Error()
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s%s to %s: %s", g.object, g.storedAt(), r.version, answer))
		}
	}
	switch {
	case f.Result == Fail:
		f.Summary, f.Remedy = "strategy Webhook: it does not convert every object", "fix the webhook, or the object that it cannot convert"
	case len(f.Evidence) == 0:
		f.Result, f.Summary = Warn, "strategy Webhook: there is no object to try it with"
	}
	return f
}

// none compares the schemas: strategy None changes the apiVersion alone, and what the other schema lacks is dropped.
func (l *look) none(f Finding) Finding {
	f.Summary = "strategy None: no field exists at a version to be dropped alone"
	for _, name := range l.drop {
		old, kept := l.version(name), l.version(l.target)
		if old == nil || kept == nil || old == kept {
			continue
		}
		at := l.survey.stored[name]
		for _, path := range missing(old, kept) {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s is not at %s: what %s holds there is lost with the next write", path, l.target, name))
			if at != nil && at.count > 0 {
				f.Result = Fail
			} else if f.Result == Pass && (old.Served || !l.survey.access) {
				f.Result = Warn
			}
		}
		if !old.Served {
			continue
		}
		for _, path := range missing(kept, old) {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s is not at %s: a client that writes whole objects there removes it", path, name))
			if f.Result == Pass {
				f.Result = Warn
			}
		}
	}
	switch f.Result {
	case Fail:
		f.Summary = "strategy None: objects are stored at a version with fields that " + l.target + " lacks"
		f.Remedy = "add these fields to " + l.target + ", or convert them by a webhook, before anything is rewritten"
	case Warn:
		f.Summary = "strategy None: the schemas differ, and a write through one version drops what it does not know"
		f.Remedy = "stop serving the version to be dropped as soon as its clients are gone"
	}
	return f
}

// missing are the paths of fields that one version's schema has and the other's has not, or with another type.
func missing(has, lacks *apiextensionsv1.CustomResourceDefinitionVersion) []string {
	if has.Schema == nil || lacks.Schema == nil {
		return nil
	}
	var out []string
	compare("", has.Schema.OpenAPIV3Schema, lacks.Schema.OpenAPIV3Schema, &out)
	slices.Sort(out)
	return out
}

func compare(path string, has, lacks *apiextensionsv1.JSONSchemaProps, out *[]string) {
	if has == nil || lacks == nil || preserves(lacks) {
		return
	}
	if has.Type != lacks.Type && has.Type != "" && lacks.Type != "" {
		*out = append(*out, fmt.Sprintf("%s (%s)", path, has.Type))
		return
	}
	for name := range has.Properties {
		below := strings.TrimPrefix(path+"."+name, ".")
		own, there := has.Properties[name], lacks.Properties[name]
		switch _, known := lacks.Properties[name]; {
		case path == "" && (name == "apiVersion" || name == "kind" || name == "metadata"):
		case !known:
			*out = append(*out, below)
		default:
			compare(below, &own, &there, out)
		}
	}
	if has.Items != nil && lacks.Items != nil {
		compare(path+"[]", has.Items.Schema, lacks.Items.Schema, out)
	}
	if has.AdditionalProperties != nil && lacks.AdditionalProperties != nil {
		compare(path+"{}", has.AdditionalProperties.Schema, lacks.AdditionalProperties.Schema, out)
	}
}

// preserves says that a schema keeps fields that it does not name.
func preserves(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}
