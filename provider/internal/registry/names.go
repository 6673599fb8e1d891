// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// modelName is what the schema asks of spec.forProvider.model, too.
var modelName = regexp.MustCompile(`^[^/:\\%"'` + "`" + `\x00-\x1f\x7f]+$`)

// CheckModelName of an external name, which no schema checks.
func CheckModelName(name string) error {
	if modelName.MatchString(name) && utf8.RuneCountInString(name) <= 256 {
		return nil
	}
	return &outside.Failure{
		Reason:  v1alpha1.ReasonRejected,
		Message: fmt.Sprintf("external name %q cannot be the name of a model", name),
		Remedy:  "use at most 256 characters, without quotes, control characters and any of / : \\ %",
	}
}

var versionNumber = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)

// CheckVersion of an external name, which no schema checks.
func CheckVersion(version string) error {
	if versionNumber.MatchString(version) {
		return nil
	}
	return &outside.Failure{
		Reason:  v1alpha1.ReasonRejected,
		Message: fmt.Sprintf("external name %q is not the number of a version", version),
		Remedy:  "set the annotation crossplane.io/external-name to a number, or remove it",
	}
}
