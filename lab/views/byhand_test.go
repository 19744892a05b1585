package views

import (
	"os/exec"
	"strings"
	"testing"
)

// TestABrokenCommandIsTheSameToAShell runs commands as they are and as they are shown, with a kubectl that prints its
// arguments. Blanks between the parts of JSON do not count.
func TestABrokenCommandIsTheSameToAShell(t *testing.T) {
	words := func(command string) string {
		out, err := exec.Command("sh", "-c", `kubectl() { for a in "$@"; do printf '<%s>' "$a"; done; }`+"\n"+command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return strings.ReplaceAll(string(out), "\n", "")
	}
	for _, command := range []string{
		`kubectl patch crd widgets.lab.example.com --type=json -p '[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]'`,
		`kubectl patch widgets.v1beta1.lab.example.com alpha --type=merge -p '{}' --namespace crdlab --field-manager crdlab --dry-run=server --output yaml --show-managed-fields`,
		`kubectl patch widget alpha -p '{"metadata":{"annotations":{"a, b":"it \"is\" [so], and {so}, for a very long while and then some more"}},"spec":{"color":"red"}}'`,
		`kubectl --kubeconfig /a/very/long/path/that/goes/on/and/on/until/nobody/can/read/it/any/more/kubeconfig get widgets`,
		`kubectl label widget alpha "note=two words" other='it'"'"'s'`,
	} {
		for _, w := range []int{30, 66, 100} {
			broken := breakCommand(command, w)
			if got, want := words(strings.Join(broken, "\n")), words(command); got != want {
				t.Errorf("at %d columns\n%s\nis %s\nand should be %s", w, strings.Join(broken, "\n"), got, want)
			}
		}
		for _, l := range breakCommand(command, 100) {
			if width(l) > 100 {
				t.Errorf("a line of %d: %s", width(l), l)
			}
		}
	}
}

func TestAHereDocumentKeepsItsLines(t *testing.T) {
	command := "kubectl apply -f - <<'EOF'\nkind: Widget\nmetadata:\n  name: alpha\nEOF"
	if got := strings.Join(breakCommand(command, 20), "\n"); got != command {
		t.Errorf("it became\n%s", got)
	}
}
