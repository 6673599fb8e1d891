// SPDX-License-Identifier: Apache-2.0

// Command rights compares what package/platform.yaml grants to programs with what they used in e2e runs.
//
//	go run ./rights seen AUDIT.log...        print the rights that audit logs show in use
//	go run ./rights check [--whole] SEEN...  fail where grants, uses and reasons contradict one another
//	go run ./rights record [--whole] SEEN... write what was used into rights.yaml
//	go run ./rights table [--check]          write docs/rights.md from rights.yaml
//
// SEEN are files with what seen printed. Of a whole run, what it did not use counts as well.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

// Files of the repository.
const (
	platformFile = "package/platform.yaml"
	rightsFile   = "hack/rights/rights.yaml"
	tableFile    = "docs/rights.md"
)

type cli struct {
	Seen   seenCmd   `cmd:"" help:"Print the rights that audit logs show in use."`
	Check  checkCmd  `cmd:"" help:"Fail where grants, uses and reasons contradict one another."`
	Record recordCmd `cmd:"" help:"Write what was used into the list of rights."`
	Table  tableCmd  `cmd:"" help:"Write the page that shows all rights."`
}

// A project is the repository, with what it grants and what is known about it.
type project struct {
	root    string
	granted []right
	list    *list
}

func main() {
	var c cli
	command := kong.Parse(&c, kong.Name("rights"), kong.Description("Compare the rights of programs with what they use."))
	p, err := open()
	if err == nil {
		err = command.Run(p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rights:", err)
		os.Exit(1)
	}
}

func open() (*project, error) {
	root, err := build.Repository()
	if err != nil {
		return nil, err
	}
	return read(root)
}

func read(root string) (*project, error) {
	platform, err := os.ReadFile(filepath.Join(root, platformFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read what is granted: %w", err)
	}
	p := &project{root: root}
	if p.granted, err = grants(platform); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(root, rightsFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of rights: %w", err)
	}
	if p.list, err = parse(data); err != nil {
		return nil, err
	}
	return p, nil
}

type seenCmd struct {
	Logs  []string `arg:""                                                                                                      help:"Audit logs." type:"existingfile"`
	Since int64    `help:"Ignore requests before this time, in seconds since 1970: the cluster had another version of Capstan."`
}

// Run prints to the standard output.
func (c *seenCmd) Run(p *project) error {
	used := set{}
	for _, path := range c.Logs {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("cannot open an audit log: %w", err)
		}
		err = used.addLog(f, p.granted, time.Unix(c.Since, 0))
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("cannot read %s: %w", path, err)
		}
	}
	_, err := io.WriteString(os.Stdout, used.text())
	return err
}

// A run is what e2e runs used.
type run struct {
	Seen  []string `arg:""                                                                       help:"Files with what was seen." optional:"" type:"existingfile"`
	Whole bool     `help:"All e2e tests ran, so that what none of them used is not used at all."`
}

func (r run) used() (set, error) {
	used := set{}
	for _, path := range r.Seen {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read what was seen: %w", err)
		}
		if err := used.addText(string(data)); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, err)
		}
	}
	return used, nil
}

type checkCmd struct{ run }

// Run fails with one line for each contradiction.
func (c *checkCmd) Run(p *project) error {
	used, err := c.used()
	if err != nil {
		return err
	}
	if found := p.list.contradictions(p.granted, used, c.Whole); len(found) > 0 {
		return fmt.Errorf("%s does not hold:\n  %s\n`make rights` records what the last e2e run used; reasons are written by hand",
			rightsFile, strings.Join(found, "\n  "))
	}
	return nil
}

type recordCmd struct{ run }

// Run changes nothing but what is used.
func (c *recordCmd) Run(p *project) error {
	used, err := c.used()
	if err != nil {
		return err
	}
	p.list.record(used, c.Whole)
	data, err := p.list.text()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.root, rightsFile), data, 0o644)
}

type tableCmd struct {
	Check bool `help:"Write nothing, fail when the page is outdated."`
}

// Run writes the page.
func (c *tableCmd) Run(p *project) error {
	path := filepath.Join(p.root, tableFile)
	want := p.list.page(p.granted)
	got, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the page: %w", err)
	}
	switch {
	case bytes.Equal(got, want):
		return nil
	case c.Check:
		return fmt.Errorf("%s is outdated: run `make generate`", tableFile)
	default:
		return os.WriteFile(path, want, 0o644)
	}
}
