// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
)

// redirect kept objects, so that all requests reach the slot of a ledger.
func redirect(d *compose.Draft, f *facts, l rollout.Ledger) {
	for _, resource := range []string{names.Service, names.Route, names.GRPCRoute} {
		kept, isMap := d.Objects()[resource].Object.(map[string]any)
		if !isMap {
			continue
		}
		o := runtime.DeepCopyJSON(kept)
		metadata := compose.Map(o, "metadata")
		if metadata["annotations"] == nil {
			metadata["annotations"] = map[string]any{}
		}
		compose.Map(metadata, "annotations")[names.AnnotationLedger] = l.Text()
		if selector := compose.Map(o, "spec", "selector"); selector != nil {
			selector[names.LabelSlot] = l.Slot
		}
		if rules := compose.List(o, "spec", "rules"); len(rules) > 0 {
			last, _ := rules[len(rules)-1].(map[string]any)
			compose.Map(o, "spec")["rules"] = []any{last}
			for _, v := range compose.List(last, "backendRefs") {
				b, _ := v.(map[string]any)
				b["weight"] = 0.0
				if compose.Text(b, "name") == f.ServiceOf(l.Slot) {
					b["weight"] = 100.0
				}
			}
		}
		d.Edit(resource, o)
	}
}
