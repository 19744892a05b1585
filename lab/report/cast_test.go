package report

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestACastHasTheTimesBetweenItsEvents(t *testing.T) {
	var b strings.Builder
	c := NewCast(&b, "a title", "a command", 80, 24)
	for i := range 4 { // thirds of a millisecond that would add up
		c.Output(time.Duration(i)*1333*time.Microsecond, "<\x1b>\n")
	}
	c.Mark(4*time.Second, "1 A step")
	c.Resize(4*time.Second, 100, 30)
	if err := c.End(5*time.Second, ExitGood); err != nil {
		t.Fatal(err)
	}
	_, events, _ := strings.Cut(b.String(), "\n")
	want := `[0.000,"o","<\u001b>\n"]
[0.001,"o","<\u001b>\n"]
[0.002,"o","<\u001b>\n"]
[0.001,"o","<\u001b>\n"]
[3.996,"m","1 A step"]
[0.000,"r","100x30"]
[1.000,"x","0"]
`
	if events != want {
		t.Errorf("the events are\n%s\nand not\n%s", events, want)
	}
}

// full is a disk without room.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestACastSaysAtItsEndWhatCouldNotBeWritten(t *testing.T) {
	c := NewCast(full{}, "", "", 80, 24)
	c.Output(0, "x")
	if err := c.End(0, ExitGood); !errors.Is(err, errFull) {
		t.Errorf("it ends with %v", err)
	}
}
