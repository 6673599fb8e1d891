// SPDX-License-Identifier: Apache-2.0

// Package tiers decides when each e2e test runs. Some run with every change. The others share what is left of CI's time:
// those whose code a change touched come first, then those that have not run for longest.
package tiers

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Where the tests are, and the list of them.
const (
	Folder = "test/e2e"
	File   = Folder + "/tiers.yaml"
)

// A Tier says when a test runs.
type Tier string

// Tiers.
const (
	// Change is what runs with every change, as part of make test.
	Change Tier = "change"
	// Rotation is what takes turns in the time that is left of CI's budget.
	Rotation Tier = "rotation"
)

// noise is by how much a test may take longer than it typically does, on a machine that others use, too.
const noise = 1.25

// A Catalogue lists every e2e test.
type Catalogue struct {
	// SpareMinutes are what CI is expected to have left for tests in rotation when all its caches are warm.
	SpareMinutes float64   `json:"spareMinutes"`
	Clusters     []Cluster `json:"clusters"`
	Tests        []Test    `json:"tests"`
}

// A Cluster is what tests of one kind run on. CI has one at a time, in the order of the list.
type Cluster struct {
	Nodes int `json:"nodes"`
	// SetupMinutes are from no cluster to one with Capstan installed.
	SetupMinutes float64 `json:"setupMinutes"`
	// Parallel is how many tests run at a time if they call t.Parallel.
	Parallel int `json:"parallel"`
}

// A Test of the e2e suite.
type Test struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Tier  Tier   `json:"tier"`
	// Minutes that it typically takes. They are an estimate unless they were measured.
	Minutes  float64 `json:"minutes"`
	Measured bool    `json:"measured,omitempty"`
	// Protects are the sources whose edit this test may fail for: folders that end in a slash, or patterns of files.
	Protects []string `json:"protects"`
	// Why it is in its tier.
	Why string `json:"why"`

	// Source is the file that declares it.
	Source string `json:"-"`
	// Parallel says that it calls t.Parallel.
	Parallel bool `json:"-"`
}

// Load the list of a repository and compare it with its tests.
func Load(root string) (*Catalogue, error) {
	data, err := os.ReadFile(filepath.Join(root, File))
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of e2e tests: %w", err)
	}
	c := &Catalogue{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", File, err)
	}
	declared, err := declarations(filepath.Join(root, Folder))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.match(declared), c.validate(), c.exist(root)); err != nil {
		return nil, fmt.Errorf("cannot use %s:\n%w", File, err)
	}
	return c, nil
}

// match the list with the functions of the suite, and learn from them what the list does not say.
func (c *Catalogue) match(declared map[string]declaration) error {
	var errs []error
	seen := map[string]bool{}
	for i := range c.Tests {
		t := &c.Tests[i]
		d, ok := declared[t.Name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%s is listed, but no file of %s declares it: remove it from the list", t.Name, Folder))
		case seen[t.Name]:
			errs = append(errs, fmt.Errorf("%s is listed twice", t.Name))
		}
		seen[t.Name] = true
		t.Source, t.Parallel = path.Join(Folder, d.file), d.parallel
	}
	for name, d := range declared {
		if !seen[name] {
			errs = append(errs, fmt.Errorf("%s of %s is not listed: add it, with its tier and the reason", name, path.Join(Folder, d.file)))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// validate what can be seen without the sources.
func (c *Catalogue) validate() error {
	var errs []error
	for _, t := range c.Tests {
		switch {
		case !slices.ContainsFunc(c.Clusters, func(k Cluster) bool { return k.Nodes == t.Nodes }):
			errs = append(errs, fmt.Errorf("%s needs %d nodes, and no cluster of the list has as many", t.Name, t.Nodes))
		case t.Tier != Change && t.Tier != Rotation:
			errs = append(errs, fmt.Errorf("%s has tier %q, want %s or %s", t.Name, t.Tier, Change, Rotation))
		case t.Minutes <= 0:
			errs = append(errs, fmt.Errorf("%s has no minutes", t.Name))
		case len(t.Protects) == 0:
			errs = append(errs, fmt.Errorf("%s protects no source", t.Name))
		case t.Why == "":
			errs = append(errs, fmt.Errorf("%s has no reason for its tier", t.Name))
		case t.Tier == Rotation && t.Minutes*noise > c.SpareMinutes:
			errs = append(errs, fmt.Errorf("%s needs up to %.0f minutes and CI is expected to have %.0f left: make it shorter, or it never gets a turn",
				t.Name, math.Ceil(t.Minutes*noise), c.SpareMinutes))
		}
	}
	return errors.Join(errs...)
}

// exist fails for a pattern that matches no source any more, because then a change would touch nothing.
func (c *Catalogue) exist(root string) error {
	var errs []error
	for _, t := range c.Tests {
		for _, p := range t.Protects {
			found, err := fs.Glob(os.DirFS(root), strings.TrimSuffix(p, "/"))
			if err != nil || len(found) == 0 {
				errs = append(errs, fmt.Errorf("%s protects %q, which matches no file", t.Name, p))
			}
		}
	}
	return errors.Join(errs...)
}

// In returns the tests of a tier, in the order of the list.
func (c *Catalogue) In(tier Tier) []Test {
	return slices.DeleteFunc(slices.Clone(c.Tests), func(t Test) bool { return t.Tier != tier })
}

// On returns the tests that need a cluster of this many nodes.
func On(nodes int, tests []Test) []Test {
	return slices.DeleteFunc(slices.Clone(tests), func(t Test) bool { return t.Nodes != nodes })
}

// touchedBy returns the first file of a change that the test may fail for, or nothing.
func (t *Test) touchedBy(files []string) string {
	i := slices.IndexFunc(files, func(file string) bool {
		if file == t.Source {
			return true
		}
		// The unit tests of what it protects are no part of what runs on a cluster.
		return !strings.HasSuffix(file, "_test.go") && slices.ContainsFunc(t.Protects, func(p string) bool {
			if strings.HasSuffix(p, "/") {
				return strings.HasPrefix(file, p)
			}
			ok, err := path.Match(p, file)
			return ok && err == nil
		})
	})
	if i < 0 {
		return ""
	}
	return files[i]
}

// typically is what the list says of how long it takes.
func (t *Test) typically() time.Duration {
	return time.Duration(t.Minutes * float64(time.Minute))
}
