// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/hooks"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/validation"
	"github.com/capstan-dev/capstan/function/definition"
	"github.com/capstan-dev/capstan/function/release"
	"github.com/capstan-dev/capstan/function/signals"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// gather everything that is known of a Database, by its spec or the one that stands in for it.
func gather(r compose.Request, own release.Release) (*facts.Cluster, error) {
	xr := r.Composite.Map()
	e := engineOf(v1alpha1.Engine(compose.Text(xr, "spec", "engine")))
	f := facts.Facts{Request: r, Recollection: memory.Recall(r), Engine: e, Release: own}
	n := names.Names{Name: compose.Text(xr, "metadata", "name"), Namespace: compose.Text(xr, "metadata", "namespace"), Generation: f.Memory.Generation(), Traits: e.Traits(), Preview: compose.PreviewOf(xr)}
	if n.Name == "" || n.Namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}
	catalogue, err := imagesOf(e, r.Settings.Database)
	if err != nil {
		return nil, err
	}
	f.Catalogue = catalogue
	n.Identity, f.Opened = facts.Identify(r, facts.ObserveSets(r, n)), facts.BucketSecrets(r, n)
	c := specified(&f, n, compose.Map(xr, "spec"))
	if before := c.StandIn(); len(c.Problems) > 0 && before != nil {
		if accepted := specified(&f, n, before); len(accepted.Problems) == 0 {
			// Whether it may be deleted follows from the spec that there is.
			accepted.Spec.DeletionProtection, accepted.Refused = c.Spec.DeletionProtection, c.Problems
			return accepted, nil
		}
	}
	return c, nil
}

// imagesOf an engine: the platform's own, or else ours.
func imagesOf(e engine.Engine, s inputv1alpha1.DatabaseSettings) ([]inputv1alpha1.DatabaseImage, error) {
	own := slices.DeleteFunc(slices.Clone(s.Images), func(i inputv1alpha1.DatabaseImage) bool {
		return cmp.Or(i.Engine, defaultEngine) != e.Traits().Engine
	})
	if len(own) > 0 {
		return own, nil
	}
	versions, err := e.Catalogue()
	if err != nil {
		return nil, fmt.Errorf("cannot read the versions of our image: %w", err)
	}
	return []inputv1alpha1.DatabaseImage{{Image: e.Image(s), Engine: e.Traits().Engine, Versions: versions}}, nil
}

// specified facts are those with a spec, of the active generation.
func specified(s *facts.Facts, n names.Names, raw map[string]any) *facts.Cluster {
	f := *s
	spec, problems, decoded := definition.Decode[v1alpha1.DatabaseSpec](theDefinition(), n.Name, raw, "availability", "monitoring")
	if f.Spec = spec; decoded {
		f.Spec = defaulted(spec, n.Name)
		f.Size, _ = f.Sized()
	}
	c := facts.Observe(&f, n, false, f.Spec.Version, resource.Quantity{})
	f.Signals = signals.InForce(c.Seen.Signals, f.Now)
	f.ToldRuns = signals.Remembered(f.Composite.Map())
	f.HookRuns = f.ToldRuns
	if len(problems) > 0 {
		f.Problems = slices.Concat(f.Unsupported, check.Settings(f.SettingsErr), problems)
	} else {
		f.Problems = check.All(c, validation.Checks)
	}
	if len(f.Problems) == 0 {
		f.HookRuns = f.Signals.Hooks(f.ToldRuns, hooks.ForSignals(c), f.Now)
	}
	return c
}
