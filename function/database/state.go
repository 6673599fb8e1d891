// SPDX-License-Identifier: Apache-2.0

package database

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/definition"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// facts of a Database that all its generations share: its spec, the platform, and what is remembered. They do not change in a
// pass.
type facts struct {
	compose.Request
	recollection

	engine engine.Engine

	// release of this function, which tags our image.
	release string

	// spec with its defaults.
	spec v1alpha1.DatabaseSpec

	// problems of the spec. As long as there are any, nothing is changed. Refused are the problems of a spec that another one
	// stands in for.
	problems, refused []check.Problem

	// catalogue of images, and size of the members.
	catalogue []inputv1alpha1.DatabaseImage
	size      size

	// opened are the Secrets that open where backups go, as members have them: those of the active generation first.
	opened []string
}

// A cluster is one generation of a Database: its members as they were observed. It does not change in a pass.
type cluster struct {
	*facts
	names

	// side is a generation that is not the active one. The Database serves without what it has.
	side bool

	// data is the major version of the data; of a generation that has none, the version it is created with. Image has the
	// programs.
	data  string
	image image

	// sets are the StatefulSets that exist, by the letter of their member.
	sets map[string]set

	// seen is what the Topology reports, once it was observed.
	seen     observev1alpha1.TopologyObservation
	observed bool

	// onDisk is what the VolumeClaim reports of volumes, and sizes what follows for them.
	onDisk storagev1alpha1.VolumeClaimObservation
	sizes  sizes
}

// A decision is what happens to a generation in this pass.
type decision struct {
	*cluster

	// before is the situation that the order was given in.
	before situation
	order  order

	// target is the revision that the spec asks for, changeID names the change to it, and planned are its effects.
	target, changeID string
	planned          []v1alpha1.ChangeEffect

	// holds reports that restarts are desired and blocked.
	holds bool

	// hooks around the change.
	hooks hooking

	// move is the switchover that is requested, if any.
	move *move
}

// state of a pass: what was decided for every generation, and the objects that follow.
type state struct {
	*decision

	// remember is what the Secret of the first Credential should hold.
	remember string

	// siblings are the other generations, by number.
	siblings map[int]*decision

	// restoring and upgrading are requests that are not carried out yet.
	restoring *restoring
	upgrading *upgrading
}

// gather everything that is known of a Database, by its spec or the one that stands in for it.
func gather(r compose.Request, release string) (*cluster, error) {
	xr := r.Composite.Map()
	e := engineOf(v1alpha1.Engine(compose.Text(xr, "spec", "engine")))
	f := facts{Request: r, recollection: recall(r), engine: e, release: release, catalogue: r.Settings.Database.Images}
	n := names{name: compose.Text(xr, "metadata", "name"), namespace: compose.Text(xr, "metadata", "namespace"), generation: f.memory.active(), traits: e.Traits()}
	if n.name == "" || n.namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}
	if len(f.catalogue) == 0 {
		versions, err := e.Catalogue()
		if err != nil {
			return nil, fmt.Errorf("cannot read the versions of our image: %w", err)
		}
		f.catalogue = []inputv1alpha1.DatabaseImage{{Image: r.Settings.Database.Image, Engine: n.traits.Engine, Versions: versions}}
	}
	n.identity, f.opened = identify(r, observeSets(r, n)), bucketSecrets(r, n)
	c := f.specified(n, compose.Map(xr, "spec"))
	if before := c.standIn(); len(c.problems) > 0 && before != nil {
		if accepted := f.specified(n, before); len(accepted.problems) == 0 {
			// Whether it may be deleted follows from the spec that there is.
			accepted.spec.DeletionProtection, accepted.refused = c.spec.DeletionProtection, c.problems
			return accepted, nil
		}
	}
	return c, nil
}

// specified facts are those with a spec, of the active generation.
func (s *facts) specified(n names, raw map[string]any) *cluster {
	f := *s
	spec, problems, decoded := definition.Decode[v1alpha1.DatabaseSpec](theDefinition(), n.name, raw, "availability", "monitoring")
	if f.spec = spec; decoded {
		f.spec = defaulted(spec, n.name)
		f.size, _ = f.sized()
	}
	c := observe(&f, n, false, f.spec.Version, resource.Quantity{})
	if len(problems) > 0 {
		f.problems = slices.Concat(f.Unsupported, check.Settings(f.SettingsErr), problems)
	} else {
		f.problems = check.All(c, checks)
	}
	return c
}

// sibling is another generation of the Database. What fits into the volumes of one has to fit into those of another.
func (s *cluster) sibling(generation int) *cluster {
	n := s.names
	n.generation = generation
	return observe(s.facts, n, true, s.data, s.sizes.created)
}

// observe a generation whose data is of a version unless it is known to be of another, and whose volumes have at least a size.
func observe(f *facts, n names, side bool, version string, least resource.Quantity) *cluster {
	c := &cluster{facts: f, names: n, side: side, sets: observeSets(f.Request, n)}
	c.seen, c.observed = observeTopology(f.Observed[n.in(nameTopology)])
	c.onDisk = observeVolumes(f.Observed[n.in(nameVolumeClaim)])
	c.data, c.image = c.versioned(version)
	c.sizes = c.measured(least)
	return c
}

// versioned is the version of the data, and its image. A version that the data cannot be brought to is none of it.
func (s *cluster) versioned(version string) (string, image) {
	found, _ := s.find(version)
	data := s.dataVersion()
	if data == "" || data == version || !s.side && (found.name == "" || s.backwards(data)) {
		return version, found
	}
	found, _ = s.find(data)
	return data, found
}

// backwards reports whether the spec asks for an earlier version than that of the data, and not by taking an upgrade back.
func (s *cluster) backwards(data string) bool {
	return s.engine.CompareVersions(data, s.spec.Version) > 0 && !s.undoesTo(s.spec.Version)
}

// observeSets of a generation, by the letter of their member.
func observeSets(r compose.Request, n names) map[string]set {
	sets := map[string]set{}
	for _, letter := range letters {
		if o := r.Observed[n.in(nameMemberPrefix+letter)]; o != nil {
			sets[letter] = observeSet(letter, o, n.traits.App)
		}
	}
	return sets
}

// identify the Database: by what its members carry, or else by its first Credential, or by what was known before.
func identify(r compose.Request, sets map[string]set) string {
	for _, letter := range compose.SortedKeys(sets) {
		if id := sets[letter].identity; id != "" {
			return id
		}
	}
	if o := r.Observed[nameAccessCredential]; o != nil {
		if id := compose.Text(o.Map(), "status", "atProvider", "identity"); id != "" {
			return id
		}
	}
	return compose.Text(r.Composite.Map(), "status", "identity")
}

// awaited is what there cannot be members without.
type awaited struct {
	reason  xpv2.ConditionReason
	message string
}

// ready reports whether an observed object does what it is for: those that tell by a condition Ready, and members, by their pods.
func ready(o compose.Object) bool {
	if o == nil {
		return false
	}
	m := o.Map()
	if compose.Text(m, "kind") == kindStatefulSet {
		return compose.Number(m, 0, "status", "readyReplicas") >= compose.Number(m, 1, "spec", "replicas")
	}
	if compose.Condition(m, string(xpv2.TypeReady)) != nil {
		return compose.IsTrue(m, xpv2.TypeReady)
	}
	return compose.Ready(o)
}
