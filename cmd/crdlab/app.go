package main

import (
	"context"
	"fmt"
	"os"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/report"
)

// app is what all commands share: the streams, and the flags that stand before any command.
type app struct {
	in       *os.File
	out, err *os.File

	noColor bool
	plain   bool
	widgets int
	rewrite string // with what, as lesson.RewriteWith
	place   place  // of the lab in the terminal
}

// rewriters are what --rewrite-with takes.
var rewriters = []string{string(lesson.WithPatch), string(lesson.WithMigration)}

// maxWidgets is as many objects as a lab can be waited for.
const maxWidgets = 100_000

// execute runs a command line and returns its exit code. Errors are told here, and nowhere else.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.noCommand(root, root.Flags().Args()) // where help was asked for; else Args has seen to it
	}
	return a.tell(ctx, err)
}

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:   "crdlab",
		Short: "A CRD version migration, done on a live API server and looked at from both sides",
		Long: "crdlab walks you through a CRD version migration on a live API server of its\n" +
			"own. At each step it shows the same object at both versions, its bytes in etcd,\n" +
			"and status.storedVersions.\n\n" +
			"Without a command it opens the lab in the terminal, and offers to go on where you\n" +
			"left; crdlab report shows how far you have come.",
		Args:          a.noCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.lab(c.Context())
		},
	}
	c.SetFlagErrorFunc(flagError)
	flags := c.PersistentFlags()
	flags.BoolVar(&a.noColor, "no-color", false, "no colours, as with the environment variable NO_COLOR")
	flags.BoolVar(&a.plain, "plain", false, "line by line, without the terminal program: for screen readers and pipes")
	flags.IntVar(&a.widgets, "widgets", lab.MinWidgets, "how many objects a track begins with")
	flags.StringVar(&a.rewrite, "rewrite-with", string(lesson.WithPatch), "how a track rewrites objects: patch by the lab, svm by the cluster's StorageVersionMigration")
	_ = c.RegisterFlagCompletionFunc("rewrite-with", cobra.FixedCompletions(rewriters, cobra.ShellCompDirectiveNoFileComp))
	a.place.flags(c)
	c.CompletionOptions.DisableDefaultCmd = true
	c.SetHelpCommand(a.help())
	help := c.HelpFunc()
	c.SetHelpFunc(func(of *cobra.Command, args []string) {
		if of != c || c.Flags().NArg() == 0 { // else it is no command, which execute tells
			help(of, args)
		}
	})
	c.AddCommand(a.run(), a.play(), a.tracks(), a.manifests(), a.serve(), a.check(), a.report(), a.reset(), a.clusters(), a.version(), a.completion())
	for _, sub := range c.Commands() {
		sub.Example = "  " + sub.Example // as help shows it
	}
	c.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.widgets < lab.MinWidgets {
			return usage("--widgets %d is too few: the lessons speak of %d objects by name; give %d or more", a.widgets, lab.MinWidgets, lab.MinWidgets)
		}
		if a.widgets > maxWidgets {
			return usage("--widgets %d is too many for a lab; give %d or fewer", a.widgets, maxWidgets)
		}
		return oneOf("--rewrite-with", a.rewrite, rewriters)
	}
	return c
}

// help is crdlab help COMMAND, which is the same as crdlab COMMAND --help.
func (a *app) help() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "What a command is for, and its flags",
		Example: "crdlab help run",
		RunE: func(c *cobra.Command, args []string) error {
			found, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 && found == c.Root() {
				return a.noCommand(c.Root(), args)
			}
			return found.Help()
		},
	}
}

// noCommand refuses what is no command, and names the one that may have been meant.
func (a *app) noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return usage("there is no command %q%s; crdlab --help lists them", args[0], didYouMean(args[0], names))
}

// colour says whether a stream is written to with colours.
func (a *app) colour(f *os.File) bool {
	return !a.noColour() && os.Getenv("TERM") != "dumb" && isTerminal(f)
}

// text tells things to a person on standard output, as wide as the terminal is.
func (a *app) text() *report.Text {
	width := 80
	if w, _, err := term.GetSize(a.out.Fd()); err == nil && w > 0 {
		width = w
	}
	return report.NewText(a.out, width, a.colour(a.out))
}

// note tells something beside the data, on standard error.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

func isTerminal(f *os.File) bool { return term.IsTerminal(f.Fd()) }

// formats of the output of commands.
const (
	formatText     = "text"
	formatJSON     = "json"
	formatMarkdown = "markdown"
)

// outputFlag adds -o to a command.
func outputFlag(c *cobra.Command, format *string, formats ...string) {
	c.Flags().StringVarP(format, "output", "o", formatText, "one of "+orList(formats))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	checks(c, func([]string) error {
		return oneOf("--output", *format, formats)
	})
}

// checks adds a look at a command's flags and arguments, before it runs.
func checks(c *cobra.Command, check func(args []string) error) {
	earlier := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(c, args); err != nil {
				return err
			}
		}
		return check(args)
	}
}
