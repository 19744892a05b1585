// Package manifests holds the YAML that steps apply, as templates: one folder a track, one file an action of a step,
// named STEP.ACTION.yaml. What several steps of a track apply stands once, in the track's folder, as ACTION.yaml; and what
// several tracks of a group apply, in the group's. The namespace is that of the kubeconfig's context and stands in none of
// them.
package manifests

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

//go:embed */*.yaml pitfalls/*/*.yaml
var files embed.FS

// Data is what a manifest is filled in with.
type Data struct {
	Group   string   // the API group of the learner
	Learner string   // the name of the learner; empty where nobody gave one
	Extra   []Object // objects beyond those that the lesson speaks of
	// Webhook is where the CRD's conversion webhook is; nil where no lab serves one.
	Webhook *Webhook
}

// Webhook is what a CRD has to say of a conversion webhook behind a Service.
type Webhook struct {
	CABundle              string // base64 of PEM
	Namespace, Name, Path string
	Port                  int32
}

// Object is one object of which only the name and a number matter.
type Object struct {
	Name   string
	Number int
}

// Extra makes the objects that bring a lesson's own up to a number.
func Extra(own, wanted int) []Object {
	var out []Object
	for n := own + 1; n <= wanted; n++ {
		out = append(out, Object{Name: fmt.Sprintf("widget-%05d", n), Number: n})
	}
	return out
}

// Render returns the YAML of one action of a step.
func Render(track, step, action string, data Data) ([]byte, error) {
	name := find(track, step, action)
	raw, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("there is no manifest %s", name)
	}
	t, err := template.New(name).Option("missingkey=error").Parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// Has says whether an action of a step has a manifest.
func Has(track, step, action string) bool {
	_, err := fs.Stat(files, find(track, step, action))
	return err == nil
}

// find returns the file of an action: the step's own, the track's own, or the one that its group has for all.
func find(track, step, action string) string {
	own := track + "/" + step + "." + action + ".yaml"
	for _, name := range []string{own, track + "/" + action + ".yaml", path.Join(path.Dir(track), action+".yaml")} {
		if _, err := fs.Stat(files, name); err == nil {
			return name
		}
	}
	return own
}

// Split takes a YAML stream apart.
func Split(stream []byte) []string {
	var out []string
	for _, doc := range strings.Split("\n"+string(stream), "\n---\n") {
		if doc = strings.TrimSpace(doc); doc != "" {
			out = append(out, doc+"\n")
		}
	}
	return out
}
