// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// PreviewOf is the name of the Preview that controls an object, or empty. Crossplane makes it the controller of what it composed for it, and
// of nothing else.
func PreviewOf(o map[string]any) string {
	for _, v := range List(o, "metadata", "ownerReferences") {
		ref, ok := v.(map[string]any)
		if ok && ref["controller"] == true && Text(ref, "kind") == v1alpha1.PreviewGroupVersionKind.Kind &&
			strings.HasPrefix(Text(ref, "apiVersion"), v1alpha1.GroupVersion.Group+"/") {
			return Text(ref, "name")
		}
	}
	return ""
}
