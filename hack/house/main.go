// SPDX-License-Identifier: Apache-2.0

// Command house counts what makes code hard to change: lines, and files of one package that all depend on one another.
//
//	go -C hack run ./house                       the working tree
//	go -C hack run ./house --base v0.1.0         a revision beside it
//	go -C hack run ./house --check               only fail where more than ten files depend on one another (make lint)
//
// A file depends on another when it uses something that the other declares. Files that depend on one another in a circle (a strongly
// connected component) can only be understood together. Lines are counted without tests and generated code.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
)

// groups are the folders that are counted together, with all below them.
var groups = []string{"function/algorithm", "function/database", "provider/analysis", "images/postgres/member", "images/mysql/member", "function", "provider", "images", "apis", "plugin", "hack"}

type command struct {
	Base  string   `help:"Revision to count, too."                                                      placeholder:"REVISION"`
	Check bool     `help:"Print nothing but the packages that are listed, and fail when there are any."`
	Dirs  []string `arg:""                                                                              help:"Folders, with all below them."                           optional:""`
	Max   int      `default:"10"                                                                        help:"Most files of a component before its package is listed."`
}

func main() {
	var c command
	k := kong.Parse(&c, kong.Description("Counts lines, and files that depend on one another in a circle."))
	k.FatalIfErrorf(c.run(context.Background(), os.Stdout))
}

func (c command) run(ctx context.Context, out io.Writer) error {
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	dirs := c.Dirs
	if len(dirs) == 0 {
		dirs = groups
	}
	after, err := read(ctx, root)
	if err != nil {
		return err
	}
	if c.Check {
		return check(after, c.Max)
	}
	if c.Base == "" {
		return write(out, dirs, c.Max, tree{"now", after})
	}
	old, err := os.MkdirTemp("", "house")
	if err != nil {
		return fmt.Errorf("cannot make a folder for %s: %w", c.Base, err)
	}
	defer os.RemoveAll(old) //nolint:errcheck // A folder for temporary files.
	if _, err := git(ctx, root, "worktree", "add", "--detach", "--force", old, c.Base); err != nil {
		return err
	}
	defer git(context.WithoutCancel(ctx), root, "worktree", "remove", "--force", old) //nolint:errcheck // `git worktree prune` removes it, too.
	before, err := read(ctx, old)
	if err != nil {
		return err
	}
	return write(out, dirs, c.Max, tree{c.Base, before}, tree{"now", after})
}

// A tree is what was read of a revision.
type tree struct {
	name     string
	packages []pkg
}

func write(out io.Writer, dirs []string, most int, trees ...tree) error {
	var table, listed bytes.Buffer
	for _, t := range trees {
		fmt.Fprintf(&table, "%s\tfiles\tlines\tcode\tcomments\tblank\tpackages\tlargest component\tfunctions\tmethods of the largest type\t\n", t.name)
		for _, dir := range dirs {
			if s := sum(t.packages, dir); s.Packages > 0 {
				fmt.Fprintf(&table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s %d\t\n",
					dir, s.Files, s.Lines, s.Code, s.Comments, s.Blank, s.Packages, s.Component, s.Functions, s.Type, s.Methods)
			}
		}
		fmt.Fprintf(&listed, "%s: packages with a component of more than %d files\n", t.name, most)
		for _, p := range entangled(t.packages, most) {
			fmt.Fprintf(&listed, "  %-40s %d of %d files\n", p.dir, p.Component, p.Files)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.AlignRight|tabwriter.Debug)
	if _, err := table.WriteTo(w); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	if _, err := listed.WriteTo(out); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	return nil
}

// entangled packages have a component of more files than allowed. The largest come first.
func entangled(packages []pkg, most int) []pkg {
	out := slices.DeleteFunc(slices.Clone(packages), func(p pkg) bool { return p.Component <= most })
	slices.SortFunc(out, func(a, b pkg) int { return cmp.Or(cmp.Compare(b.Component, a.Component), cmp.Compare(a.dir, b.dir)) })
	return out
}

// check that no package is entangled.
func check(packages []pkg, most int) error {
	found := entangled(packages, most)
	errs := make([]error, 0, len(found))
	for _, p := range found {
		errs = append(errs, fmt.Errorf("%s: %d of %d files depend on one another in a circle, at most %d may: move what the lower files use of the upper ones",
			p.dir, p.Component, p.Files, most))
	}
	return errors.Join(errs...)
}

// sum of the packages in a folder and below it.
func sum(packages []pkg, dir string) counts {
	var s counts
	for _, p := range packages {
		if p.dir != dir && !strings.HasPrefix(p.dir, dir+"/") {
			continue
		}
		s.Packages++
		s.Files += p.Files
		s.Lines += p.Lines
		s.Code += p.Code
		s.Comments += p.Comments
		s.Blank += p.Blank
		s.Functions += p.Functions
		s.Component = max(s.Component, p.Component)
		if p.Methods > s.Methods {
			s.Methods, s.Type = p.Methods, p.Type
		}
	}
	return s
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot run git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// within a root, with slashes.
func within(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}
