// SPDX-License-Identifier: Apache-2.0

// Command prose checks the words of documents, comments and messages.
//
//	go run ./prose            fail when a file breaks a rule
//	go run ./prose --all      also print what breaks a rule in places of the baseline
//	go run ./prose --update   also rewrite baseline.yaml, without entries that are clean now
//
// words.yaml has the rules: one word for one idea, as docs/glossary.md explains. exceptions.yaml has what is right although a rule
// forbids it. baseline.yaml lists the folders and files that still break rules; everything else is held to them.
//
// Vale does this for documents. It is not used because it needs cgo for its parsers, which the builds of this repository switch off,
// and it cannot distinguish a message in Go from any other string.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

// folder of the three files of rules, below the root of the repository.
const folder = "hack/prose"

type cli struct {
	All    bool `help:"Also print violations of places in baseline.yaml."`
	Update bool `help:"Remove entries from baseline.yaml that are clean now."`
}

func main() {
	var c cli
	command := kong.Parse(&c, kong.Name("prose"), kong.Description("Check the words of documents, comments and messages."))
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

// Run checks the repository that the current folder is part of.
func (c *cli) Run() error {
	root, err := build.Repository()
	if err != nil {
		return fmt.Errorf("cannot find the repository: %w", err)
	}
	return c.check(root, os.Stdout)
}

// check prints what breaks a rule below root, and fails when anything does.
func (c *cli) check(root string, out io.Writer) error {
	var r rules
	if err := r.load(os.DirFS(filepath.Join(root, folder))); err != nil {
		return err
	}
	passages, err := collect(os.DirFS(root))
	if err != nil {
		return err
	}
	found := r.judge(passages)
	if c.Update {
		if err := r.shrink(filepath.Join(root, folder), found); err != nil {
			return err
		}
	}
	lines := r.report(found, c.All)
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return fmt.Errorf("cannot print: %w", err)
		}
	}
	if n := len(lines); n > 0 {
		return fmt.Errorf("%d violations: docs/glossary.md has the words, %s/exceptions.yaml what is right nevertheless", n, folder)
	}
	return nil
}
