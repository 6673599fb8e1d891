// SPDX-License-Identifier: Apache-2.0

package compose

import "k8s.io/apimachinery/pkg/runtime/schema"

// checks report by kind whether an object does what it is for. An object of another kind does as soon as it exists.
var checks = map[schema.GroupKind]func(Object) bool{
	{Group: "apps", Kind: "Deployment"}: deploymentReady,
}

// Ready reports whether an observed object does what it is for. One that is not observed (nil) does not.
func Ready(o Object) bool {
	if o == nil {
		return false
	}
	gvk := schema.FromAPIVersionAndKind(TextOf(o, "apiVersion"), TextOf(o, "kind"))
	check, ok := checks[gvk.GroupKind()]
	return !ok || check(o)
}

// deploymentReady when as many pods serve as it asks for, of any revision:
// while pods are replaced, the earlier ones serve.
func deploymentReady(o Object) bool {
	return NumberOf(o, 0, "status", "availableReplicas") >= NumberOf(o, 1, "spec", "replicas")
}
