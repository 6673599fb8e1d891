// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// Image of the members, for the desired version.
type Image struct {
	// Name with its tag, and what of it belongs to a revision: a tag and a digest that follow the release of the function do not.
	Name, Pinned string

	Version inputv1alpha1.DatabaseVersion
}

// Find the image of a version, and the versions there are instead.
func (s *Cluster) Find(version string) (Image, []string) {
	var versions []string
	for _, i := range s.Catalogue {
		for _, v := range i.Versions {
			if v.Version != version {
				versions = append(versions, v.Version)
				continue
			}
			return Image{Name: s.Release.Complete(i.Image), Pinned: i.Image, Version: v}, nil
		}
	}
	slices.SortFunc(versions, s.Engine.CompareVersions)
	return Image{}, slices.Compact(versions)
}

// Size of a member.
type Size struct {
	CPU, Memory      resource.Quantity
	Connections      int32
	StorageClassName string

	// WALStorageClassName is the class of volumes for logs alone.
	WALStorageClassName string
}

// PlanDefault is the plan of Databases that name none.
const PlanDefault = "default"

// defaultConnections of a plan that does not say how many.
const defaultConnections = 100

// PlanName is the plan in the spec.
func (s *Facts) PlanName() string { return cmp.Or(s.Spec.Plan, PlanDefault) }

// Sized by the plan, or by resources of the spec, which replace the plan's. It is not found when there is no such plan.
func (s *Facts) Sized() (Size, bool) {
	name := s.PlanName()
	plans := s.Settings.Database.Plans
	i := slices.IndexFunc(plans, func(p inputv1alpha1.DatabasePlan) bool { return p.Name == name })
	if i < 0 {
		return Size{}, false
	}
	p := plans[i]
	out := Size{CPU: p.CPU, Memory: p.Memory, Connections: cmp.Or(p.MaxConnections, defaultConnections), StorageClassName: p.StorageClassName}
	out.WALStorageClassName = cmp.Or(p.WALStorageClassName, p.StorageClassName)
	if s.Spec.Resources.CPU != nil {
		out.CPU = *s.Spec.Resources.CPU
	}
	if s.Spec.Resources.Memory != nil {
		out.Memory = *s.Spec.Resources.Memory
	}
	return out, true
}

// DataVersion is the major version of the data, or empty when there is none yet.
func (s *Cluster) DataVersion() string {
	return cmp.Or(s.Memory.Versions[s.Generation], FirstOf(s.Sets, func(v Set) string { return v.version }))
}
