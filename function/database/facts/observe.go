// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// BucketSecrets open the place of backups for the members that exist, the active generation's first.
func BucketSecrets(r compose.Request, n names.Names) []string {
	var active, others []string
	for _, resource := range compose.SortedKeys(r.Observed) {
		o := r.Observed[resource]
		g, ok := names.GenerationOf(resource)
		if !ok || compose.TextOf(o, "kind") != names.KindStatefulSet {
			continue
		}
		switch name := SecretOf(compose.List(o.Map(), "spec", "template", "spec", "volumes"), names.VolumeBackup); {
		case name == "":
		case g == n.Generation:
			active = append(active, name)
		default:
			others = append(others, name)
		}
	}
	return append(active, others...)
}

// Sibling is another generation of the Database. The volumes of every generation have to hold the same data.
func (s *Cluster) Sibling(generation int) *Cluster {
	n := s.Names
	n.Generation = generation
	return Observe(s.Facts, n, true, s.Data, s.Sizes.Created)
}

// Observe a generation whose data is of a version unless it is known to be of another, and whose volumes have at least a size.
func Observe(f *Facts, n names.Names, side bool, version string, least resource.Quantity) *Cluster {
	c := &Cluster{Facts: f, Names: n, Side: side, Sets: ObserveSets(f.Request, n)}
	c.Seen, c.HasTopology = observeTopology(f.Observed[n.In(names.Topology)])
	c.OnDisk = ObserveVolumes(f.Observed[n.In(names.VolumeClaim)])
	c.Data, c.Image = c.versioned(version)
	c.Sizes = c.measured(least)
	return c
}

// versioned is the version of the data, and its image. A version that the data cannot be brought to is none of it.
func (s *Cluster) versioned(version string) (string, Image) {
	found, _ := s.Find(version)
	data := s.DataVersion()
	if data == "" || data == version || !s.Side && (found.Name == "" || s.Backwards(data)) {
		return version, found
	}
	found, _ = s.Find(data)
	return data, found
}

// Backwards reports whether the spec asks for an earlier version than the data has, and not by undoing an upgrade.
func (s *Cluster) Backwards(data string) bool {
	return s.Engine.CompareVersions(data, s.Spec.Version) > 0 && !s.undoesTo(s.Spec.Version)
}

// FirstOf is the first value that a StatefulSet has, by the letters of members, or the zero value.
func FirstOf[V comparable](sets map[string]Set, of func(Set) V) V {
	var zero V
	for _, letter := range compose.SortedKeys(sets) {
		if v := of(sets[letter]); v != zero {
			return v
		}
	}
	return zero
}

// ObserveSets of a generation, by the letter of their member.
func ObserveSets(r compose.Request, n names.Names) map[string]Set {
	sets := map[string]Set{}
	for _, letter := range names.Letters {
		if o := r.Observed[n.In(names.MemberPrefix+letter)]; o != nil {
			sets[letter] = observeSet(letter, o, n.Traits.App)
		}
	}
	return sets
}

// Identify the Database: by what its members carry, or else by its first Credential, or by what was known before.
func Identify(r compose.Request, sets map[string]Set) string {
	remembered := ""
	if o := r.Observed[names.AccessCredential]; o != nil {
		remembered = compose.Text(o.Map(), "status", "atProvider", "identity")
	}
	return cmp.Or(FirstOf(sets, func(v Set) string { return v.identity }), remembered, compose.Text(r.Composite.Map(), "status", "identity"))
}

// Ready reports whether an observed object does what it is for: by its condition Ready, or, for a StatefulSet, by its pods.
func Ready(o compose.Object) bool {
	if o == nil {
		return false
	}
	m := o.Map()
	if compose.Text(m, "kind") == names.KindStatefulSet {
		return compose.Number(m, 0, "status", "readyReplicas") >= compose.Number(m, 1, "spec", "replicas")
	}
	if compose.Condition(m, string(xpv2.TypeReady)) != nil {
		return compose.IsTrue(m, xpv2.TypeReady)
	}
	return compose.Ready(o)
}

// Moment of a text, or nil for the latest. The spec was checked.
func Moment(at v1alpha1.Moment) *time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(at))
	if err != nil {
		return nil
	}
	t = t.UTC()
	return &t
}

// Stamp of a text that members wrote, or nil.
func Stamp(text string) *metav1.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: t}
}
