// SPDX-License-Identifier: Apache-2.0

package jobhealth

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Differ reports whether two versions of an object in the cache have different facts. The cache holds nothing else.
func Differ(was, is client.Object) bool {
	a, ok := was.DeepCopyObject().(client.Object)
	if !ok {
		return true
	}
	a.SetResourceVersion(is.GetResourceVersion())
	return !equality.Semantic.DeepEqual(a, is)
}
