// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// defaultConsumer is who connects when nobody is named.
const defaultConsumer = "app"

// Defaults of spec.storageGrowth.
const (
	whenFreePercent = 15
	byPercent       = 20
)

// decode a spec. The schema keeps almost everything out that would not decode;
// what gets here nevertheless is a problem like any other. Quantities are looked
// at first, because their errors name no field.
func decode(spec map[string]any) (v1alpha1.DatabaseSpec, []check.Problem) {
	var (
		s  v1alpha1.DatabaseSpec
		ps []check.Problem
	)

	for _, path := range [][]string{{"storage"}, {"storageGrowth", "max"}, {"resources", "cpu"}, {"resources", "memory"}, {"backup", "maxArchiveBacklog"}, {"backup", "to", "volume", "size"}, {"pooler", "resources", "cpu"}, {"pooler", "resources", "memory"}} {
		last := len(path) - 1

		v, ok := compose.Map(spec, path[:last]...)[path[last]]
		if !ok || v == nil {
			continue
		}

		raw, err := json.Marshal(v)
		if err == nil {
			err = new(resource.Quantity).UnmarshalJSON(raw)
		}

		if err != nil {
			ps = append(ps, check.Invalid("spec."+strings.Join(path, "."), v, "must be a quantity such as 50Gi or 2"))
		}
	}

	if len(ps) > 0 {
		return s, ps
	}

	ps = check.Decode(spec, &s)

	return s, ps
}

// defaulted spec. The schema has set what does not depend on anything; it is
// repeated for composite resources that were stored before their schema had the
// default.
func defaulted(s v1alpha1.DatabaseSpec, name string) v1alpha1.DatabaseSpec {
	s.Availability = cmp.Or(s.Availability, &v1alpha1.DatabaseAvailability{})
	s.Availability.Spread = cmp.Or(s.Availability.Spread, v1alpha1.SpreadOverZones)
	s.Availability.Profile = cmp.Or(s.Availability.Profile, v1alpha1.FailoverBalanced)
	s.Availability.Durability = cmp.Or(s.Availability.Durability, v1alpha1.DurabilitySynchronous)

	if m := s.Maintenance; m != nil {
		m.Approval = cmp.Or(m.Approval, v1alpha1.ApprovalAuto)
	}

	s.Resources = cmp.Or(s.Resources, &v1alpha1.DatabaseResources{})
	s.Monitoring = cmp.Or(s.Monitoring, &v1alpha1.DatabaseMonitoring{})
	s.Monitoring.Enabled = cmp.Or(s.Monitoring.Enabled, new(true))
	s.DeletionProtection = cmp.Or(s.DeletionProtection, new(true))

	defaultedBackup(s.Backup)
	defaultedPooler(s.Pooler)

	if g := s.StorageGrowth; g != nil {
		g.WhenFreePercent = cmp.Or(g.WhenFreePercent, whenFreePercent)
		g.ByPercent = cmp.Or(g.ByPercent, byPercent)
	}

	if len(s.Databases) == 0 {
		s.Databases = []v1alpha1.LogicalDatabase{{Name: strings.ReplaceAll(name, "-", "_")}}
	}

	if s.Consumers == nil {
		s.Consumers = []v1alpha1.Consumer{{Name: defaultConsumer}}
	}

	for i := range s.Consumers {
		s.Consumers[i].Database = cmp.Or(s.Consumers[i].Database, s.Databases[0].Name)
		s.Consumers[i].Access = cmp.Or(s.Consumers[i].Access, v1alpha1.ConsumerReadWrite)
	}

	defaultedHooks(s)

	if t := s.TLS; t != nil && t.IssuerRef != nil {
		t.IssuerRef.Kind = cmp.Or(t.IssuerRef.Kind, kindClusterIssuer)
	}

	return s
}
