// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// image of the members, for the version that is asked for.
type image struct {
	// name with its tag, and what of it belongs to a revision: a tag that follows the version of the function does not.
	name, pinned string

	version inputv1alpha1.DatabaseVersion
}

// find the image of a version, and the versions there are instead.
func (s *cluster) find(version string) (image, []string) {
	var versions []string
	for _, i := range s.catalogue {
		if i.Engine != "" && i.Engine != s.spec.Engine {
			continue
		}
		for _, v := range i.Versions {
			if v.Version != version {
				versions = append(versions, v.Version)
				continue
			}
			found := image{name: i.Image, pinned: i.Image, version: v}
			if !strings.ContainsAny(i.Image[strings.LastIndex(i.Image, "/")+1:], ":@") {
				found.name += ":" + s.release
			}
			return found, nil
		}
	}
	slices.SortFunc(versions, s.engine.CompareVersions)
	return image{}, slices.Compact(versions)
}

// size of a member.
type size struct {
	cpu, memory      resource.Quantity
	connections      int32
	storageClassName string
}

// planDefault is the plan of Databases that name none.
const planDefault = "default"

// defaultConnections of a plan that does not say how many.
const defaultConnections = 100

// planName is the plan that is asked for.
func (s *facts) planName() string { return cmp.Or(s.spec.Plan, planDefault) }

// sized by the plan, or by resources of the spec, which stand in for those of the plan default. It is not found when there is no
// such plan.
func (s *facts) sized() (size, bool) {
	name := s.planName()
	plans := s.Settings.Database.Plans
	i := slices.IndexFunc(plans, func(p inputv1alpha1.DatabasePlan) bool { return p.Name == name })
	if i < 0 {
		return size{}, false
	}
	p := plans[i]
	out := size{cpu: p.CPU, memory: p.Memory, connections: p.MaxConnections, storageClassName: p.StorageClassName}
	if out.connections == 0 {
		out.connections = defaultConnections
	}
	if s.spec.Resources.CPU != nil {
		out.cpu = *s.spec.Resources.CPU
	}
	if s.spec.Resources.Memory != nil {
		out.memory = *s.spec.Resources.Memory
	}
	return out, true
}
