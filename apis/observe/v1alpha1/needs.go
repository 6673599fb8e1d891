// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import autoscalingv2 "k8s.io/api/autoscaling/v2"

// ReplicasNeeded is the number of replicas that the load asks for, by what an autoscaler saw when it looked last, without its
// bounds. It is known when the autoscaler saw any load. The load is a mean over all replicas, and the use of a resource
// one over those that are ready: it counts only when all are. A metric with a fixed value, as a latency has, is no load.
func ReplicasNeeded(specs []autoscalingv2.MetricSpec, seen []autoscalingv2.MetricStatus, replicas int64, ready bool) (needs float64, known bool) {
	if replicas <= 0 {
		return 0, false
	}
	for i := range min(len(specs), len(seen)) {
		s, now := specs[i], seen[i]
		switch {
		case s.Type != now.Type:
		case s.External != nil && now.External != nil && s.External.Target.AverageValue != nil && now.External.Current.AverageValue != nil:
			current, target := now.External.Current.AverageValue.MilliValue(), s.External.Target.AverageValue.MilliValue()
			needs, known = max(needs, float64(replicas*current)/float64(target)), true
		case ready && s.Resource != nil && now.Resource != nil && s.Resource.Target.AverageUtilization != nil && now.Resource.Current.AverageUtilization != nil:
			current, target := *now.Resource.Current.AverageUtilization, *s.Resource.Target.AverageUtilization
			needs, known = max(needs, float64(replicas*int64(current))/float64(target)), true
		}
	}
	return needs, known
}
