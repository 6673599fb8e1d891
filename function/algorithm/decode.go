// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// decode a spec. The schema keeps almost everything out that would not decode;
// what gets here nevertheless is a problem like any other. The types that parse
// text are looked at first, because their errors name no field.
func decode(spec map[string]any) (v1alpha1.AlgorithmSpec, []problem) {
	var (
		s  v1alpha1.AlgorithmSpec
		ps []problem
	)

	for _, f := range []struct {
		path   []string
		into   json.Unmarshaler
		remedy string
	}{
		{[]string{"resources", "cpu"}, &resource.Quantity{}, "must be a quantity such as 500m or 2"},
		{[]string{"resources", "memory"}, &resource.Quantity{}, "must be a quantity such as 512Mi or 2Gi"},
		{[]string{"resources", "sharedMemory"}, &resource.Quantity{}, "must be a quantity such as 512Mi or 2Gi"},
		{[]string{"availability", "maxUnavailable"}, &intstr.IntOrString{}, "must be a number or a share such as 25%"},
	} {
		parent, key := compose.Map(spec, f.path[0]), f.path[1]

		v, ok := parent[key]
		if !ok || v == nil {
			continue
		}

		raw, err := json.Marshal(v)
		if err == nil {
			err = f.into.UnmarshalJSON(raw)
		}

		if err != nil {
			ps = append(ps, invalid(fmt.Sprintf("spec.%s.%s", f.path[0], key), v, f.remedy))
		}
	}

	if len(ps) > 0 {
		return s, ps
	}

	raw, err := json.Marshal(spec)
	if err == nil {
		err = kjson.Unmarshal(raw, &s)
	}

	if err != nil {
		return s, []problem{{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec: cannot be read: %v: correct the type of that field", err)}}
	}

	return s, nil
}

// defaulted spec. The schema has set what does not depend on anything; it is
// repeated for composite resources that were stored before their schema had the
// default.
func defaulted(s v1alpha1.AlgorithmSpec, settings inputv1alpha1.Settings) v1alpha1.AlgorithmSpec {
	s.Replicas = cmp.Or(s.Replicas, new(int32(1)))
	s.Port = cmp.Or(s.Port, new(int32(8080)))
	s.Resources = cmp.Or(s.Resources, &v1alpha1.Resources{})
	s.Availability = cmp.Or(s.Availability, &v1alpha1.Availability{})
	s.Scheduling = cmp.Or(s.Scheduling, &v1alpha1.Scheduling{})

	s.Resources.CPU = cmp.Or(s.Resources.CPU, settings.Algorithm.CPU)
	s.Resources.Memory = cmp.Or(s.Resources.Memory, settings.Algorithm.Memory)

	if s.Resources.GPU != "" {
		s.Resources.GPUCount = cmp.Or(s.Resources.GPUCount, new(int32(1)))
	}

	s.Availability.MaxUnavailable = cmp.Or(s.Availability.MaxUnavailable, new(intstr.FromInt32(1)))
	if s.Availability.Zones == "" {
		s.Availability.Zones = v1alpha1.SpreadPreferred
	}

	if s.Config != nil && s.Config.MountPath == "" {
		s.Config.MountPath = "/etc/algorithm"
	}

	if s.Scaling != nil && s.Scaling.MinReplicas == 0 {
		s.Scaling.MinReplicas = 1
	}

	return s
}
