package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/manifests"
)

func (a *app) manifests() *cobra.Command {
	var learner string
	c := &cobra.Command{
		Use:   "manifests TRACK [STEP[.ACTION]]",
		Short: "The YAML of a step, for kubectl apply -f -",
		Long: "Prints what the steps of a track apply, with the API group filled in: of one\n" +
			"step, or of one of its actions.\n\n" +
			"kubectl applies a CRD and its objects one after the other, each from a stream of\n" +
			"its own; the steps that make both have an action for each:\n\n" +
			"  crdlab manifests migrate create-v1alpha1.crd | kubectl apply -f -\n" +
			"  crdlab manifests migrate create-v1alpha1.widgets | kubectl apply -f -",
		Example:           "crdlab manifests migrate create-v1alpha1.crd",
		Args:              arguments(1, 2, "a track, and a step where you want only one"),
		ValidArgsFunction: completeTrack,
		RunE: func(_ *cobra.Command, args []string) error {
			track, err := findTrack(args[0])
			if err != nil {
				return err
			}
			wanted, err := findManifests(track, strings.Join(args[1:], ""))
			if err != nil {
				return err
			}
			if err := lab.CheckLearner(learner); err != nil {
				return usage("--learner %w", err)
			}
			data := manifests.Data{Group: lab.Group(learner), Learner: learner, Extra: manifests.Extra(lab.MinWidgets, a.widgets)}
			if track.Mappings != nil {
				if data.Webhook, err = announced(track, data.Group); err != nil {
					return err
				}
			}
			return printManifests(a.out, track, wanted, data)
		},
	}
	c.Flags().StringVar(&learner, "learner", "", "the learner whose API group it is to be")
	_ = c.RegisterFlagCompletionFunc("learner", cobra.NoFileCompletions)
	return c
}

// announced is the webhook of the lab that runs: its CA is made anew for each.
func announced(track *lesson.Track, group string) (*manifests.Webhook, error) {
	w, err := lab.Announced(storage.Resource{Group: group, Plural: track.Plural})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage("the manifests of %s name the webhook of a lab that runs, and none does for %s; open the track in crdlab, and ask again from another terminal", track.ID, group)
	}
	if errors.Is(err, lab.ErrSeveral) {
		return nil, usage("%w, so that it is not known which the manifests are to name; end all but one, or use the file that o writes in the lab", err)
	}
	return w, err
}

// manifest is an action that applies a file.
type manifest struct{ step, action string }

// findManifests returns those of the whole track, of a step, or of one of its actions.
func findManifests(track *lesson.Track, name string) ([]manifest, error) {
	id, action, one := strings.Cut(name, ".")
	first, last := 0, len(track.Steps)-1
	if id != "" {
		i, err := findStep(track, id)
		if err != nil {
			return nil, err
		}
		first, last = i, i
	}
	var found []manifest
	var actions []string
	for _, step := range track.Steps[first : last+1] {
		for _, a := range step.Actions {
			if !manifests.Has(track.ID, step.ID, a.ID) {
				continue
			}
			actions = append(actions, step.ID+"."+a.ID)
			if !one || a.ID == action {
				found = append(found, manifest{step.ID, a.ID})
			}
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case one:
		return nil, usage("there is no manifest %q%s; crdlab manifests %s %s prints all of the step", name, didYouMean(name, actions), track.ID, id)
	}
	return nil, usage("the step %s applies no manifest: it reads or patches what is there; crdlab run %s --until %s shows its requests", id, track.ID, id)
}

func printManifests(out io.Writer, track *lesson.Track, wanted []manifest, data manifests.Data) error {
	for i, m := range wanted {
		body, err := manifests.Render(track.ID, m.step, m.action, data)
		if err != nil {
			return err
		}
		if i > 0 {
			body = append([]byte("---\n"), body...)
		}
		if len(wanted) > 1 {
			body = append([]byte(fmt.Sprintf("# %s.%s\n", m.step, m.action)), body...)
		}
		if _, err := out.Write(body); err != nil {
			return err
		}
	}
	return nil
}
