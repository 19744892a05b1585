package bench

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed faults.en.md
var prose string

// Prose is what is to be said to people of a fault, in Markdown, one line a paragraph: what they see first, where to look,
// how to tell it from others. What it says of the server comes from the cells; those of other faults are left alone. It is
// an error if a cell that it speaks of is missing.
func Prose(fault string, cells []Cell) (string, error) {
	text, ok := piece(fault)
	if !ok {
		return "", fmt.Errorf("the prose of the faults has no %q", fault)
	}
	t, err := template.New(fault).Funcs(functions(fault, cells)).Parse(text)
	if err != nil {
		return "", fmt.Errorf("the prose of the fault %s: %w", fault, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, nil); err != nil {
		return "", fmt.Errorf("the prose of the fault %s: %w", fault, err)
	}
	return out.String(), nil
}

// piece is the text under a heading.
func piece(heading string) (string, bool) {
	for p := range strings.SplitSeq("\n"+prose, "\n## ") {
		if head, text, _ := strings.Cut(p, "\n"); strings.TrimSpace(head) == heading {
			return strings.TrimSpace(text), true
		}
	}
	return "", false
}

// functions are what the prose may ask of a cell, by its operation and its version.
func functions(fault string, cells []Cell) template.FuncMap {
	of := func(operation, at string) (Cell, error) {
		for _, c := range cells {
			if c.Fault == fault && c.Operation == operation && c.At == at {
				return c, nil
			}
		}
		return Cell{}, fmt.Errorf("there is no cell of %s at the %s version", operation, at)
	}
	return template.FuncMap{
		"status": func(operation, at string) (string, error) {
			c, err := of(operation, at)
			if c.Status == 0 {
				return "no status", err
			}
			return fmt.Sprint(c.Status), err
		},
		"answer": func(operation, at string) (string, error) {
			c, err := of(operation, at)
			return strings.ReplaceAll(c.Answer, "`", "'"), err
		},
		"reviews": func(operation, at string) (int, error) {
			c, err := of(operation, at)
			return c.Reviews, err
		},
		"times": func(operation, at string) (string, error) {
			c, err := of(operation, at)
			if c.Reviews == 1 {
				return "once", err
			}
			return fmt.Sprint(c.Reviews, " times"), err
		},
		"ms": func(operation, at string) (string, error) {
			c, err := of(operation, at)
			return fmt.Sprintf("%.0f ms", c.DurationMS), err
		},
	}
}
