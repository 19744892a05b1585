package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "The versions of crdlab and of what it is made of",
		Example: "crdlab version",
		Args:    arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintf(a.out, "crdlab      %s\nkubernetes  %s\netcd        %s\ngo          %s %s/%s\n", ownVersion(info),
				moduleVersion(info, "k8s.io/apiextensions-apiserver"), moduleVersion(info, "go.etcd.io/etcd/server/v3"),
				runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// version is that of this crdlab.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return ownVersion(info)
}

// ownVersion is the module's version, or the commit from which it was built.
func ownVersion(info *debug.BuildInfo) string {
	if info == nil {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel " + s.Value
		}
	}
	return "devel"
}

func moduleVersion(info *debug.BuildInfo, path string) string {
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}
