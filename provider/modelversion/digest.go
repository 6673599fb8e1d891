// SPDX-License-Identifier: Apache-2.0

package modelversion

import (
	"regexp"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
)

// digestForm is the one way to write a digest, so that it can be compared letter by letter.
var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// digest of the files of a version, as its tag says, or "". Any user may set that tag to anything.
func digest(v *mlflow.Version) string {
	if d := v.Tags[v1alpha1.TagDigest]; digestForm.MatchString(d) {
		return d
	}
	return ""
}

// remarks on a version that can be used.
func remarks(v *mlflow.Version) []string {
	if _, ok := v.Tags[v1alpha1.TagDigest]; !ok || digest(v) != "" {
		return nil
	}
	return []string{"The tag digest of the version is not sha256: and 64 digits or letters from a to f, " +
		"so that its files cannot be verified with it: set it again, or remove it"}
}
