package main

import (
	"github.com/spf13/cobra"
)

// shells for which completion can be generated.
var shells = []string{"bash", "zsh", "fish"}

func (a *app) completion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "The completion script of a shell: bash, zsh or fish",
		Long: "Prints a script that completes commands, tracks, steps and flags. For this session:\n\n" +
			"  source <(crdlab completion bash)\n" +
			"  source <(crdlab completion zsh)\n" +
			"  crdlab completion fish | source",
		Example:   "crdlab completion bash",
		ValidArgs: shells,
		Args:      arguments(1, 1, "the name of a shell ("+orList(shells)+")"),
		RunE: func(c *cobra.Command, args []string) error {
			switch root := c.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			}
			return usage("the shell %q is unknown; give %s", args[0], orList(shells)) // no shell is another misspelt
		},
	}
}
