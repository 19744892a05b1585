package embedded

import (
	"runtime/debug"
	"strings"

	machineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
)

// libraryVersion is the Kubernetes release of the API server that is linked in, such as v1.37.2: its modules are v0.37.2.
// A binary that does not say what it was built from knows the minor release alone.
func libraryVersion(effective compatibility.EffectiveVersion) string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if rest, ok := strings.CutPrefix(m.Version, "v0."); ok && m.Path == "k8s.io/apiextensions-apiserver" {
				return "v1." + rest
			}
		}
	}
	return "v" + effective.BinaryVersion().WithPatch(effective.BinaryVersion().Patch()).String()
}

// ownVersion says at /version what release this is. The libraries alone would name a development build, with a version
// that kubectl cannot read.
type ownVersion struct {
	compatibility.EffectiveVersion
}

// Info is what /version answers.
func (v ownVersion) Info() *machineryversion.Info {
	info := *v.EffectiveVersion.Info()
	info.GitVersion = libraryVersion(v.EffectiveVersion)
	info.GitCommit, info.GitTreeState = "", ""
	if parts := strings.SplitN(strings.TrimPrefix(info.GitVersion, "v"), ".", 3); len(parts) >= 2 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return &info
}
