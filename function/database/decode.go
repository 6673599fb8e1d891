// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/pooler"
	"github.com/capstan-dev/capstan/function/definition"
)

// theDefinition of Databases.
var theDefinition = definition.Once(apis.Database)

// defaultConsumer is the consumer of a spec that names none.
const defaultConsumer = "app"

// defaulted spec: what depends on other fields, or must not be in the schema. The schema has the other defaults.
func defaulted(s v1alpha1.DatabaseSpec, name string) v1alpha1.DatabaseSpec {
	s.Resources = cmp.Or(s.Resources, &v1alpha1.DatabaseResources{})
	// The schema cannot have these two: a form would write a default that is a Boolean, and so would make the block.
	if b := s.Backup; b != nil {
		b.Enabled = cmp.Or(b.Enabled, new(true))
	}
	if m := s.Monitoring; m != nil {
		m.Enabled = cmp.Or(m.Enabled, new(true))
	}
	if len(s.Databases) == 0 {
		s.Databases = []v1alpha1.LogicalDatabase{{Name: strings.ReplaceAll(name, "-", "_")}}
	}
	if m := s.Monitoring; m != nil {
		for i := range m.Queries {
			m.Queries[i].Database = cmp.Or(m.Queries[i].Database, s.Databases[0].Name)
		}
	}
	if s.Consumers == nil {
		s.Consumers = []v1alpha1.Consumer{{Name: defaultConsumer, Access: v1alpha1.ConsumerReadWrite}}
	}
	for i := range s.Consumers {
		s.Consumers[i].Database = cmp.Or(s.Consumers[i].Database, s.Databases[0].Name)
	}
	if r := s.Replication; r != nil {
		for i := range r.Slots {
			r.Slots[i].Database = cmp.Or(r.Slots[i].Database, s.Databases[0].Name)
		}
		for i := range r.Publications {
			r.Publications[i].Database = cmp.Or(r.Publications[i].Database, s.Databases[0].Name)
		}
	}
	if m := s.Maintenance; m != nil && m.Hooks != nil {
		sql := func(h v1alpha1.DatabaseHook) {
			if h.SQL != nil {
				h.SQL.Database = cmp.Or(h.SQL.Database, s.Databases[0].Name)
			}
		}
		for _, h := range slices.Concat(m.Hooks.Before, m.Hooks.After) {
			sql(h.DatabaseHook)
		}
		for _, h := range m.Hooks.OnSignal {
			sql(h)
		}
	}
	if p := s.Pooler; p != nil {
		p.Resources = cmp.Or(p.Resources, &v1alpha1.PoolerResources{})
		p.Resources.CPU = cmp.Or(p.Resources.CPU, &pooler.CPU)
		if p.Resources.Memory == nil {
			more := int64(max(0, *p.MaxClients-pooler.DefaultMaxClients)) * pooler.MemoryOfClient.Value()
			p.Resources.Memory = resource.NewQuantity(pooler.Memory.Value()+more, resource.BinarySI)
		}
	}
	return s
}
