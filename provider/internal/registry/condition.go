// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Available marks mg as ready. A remark says what people should know all the same.
func Available(mg resource.Managed, remark ...string) {
	mg.SetConditions(xpv2.Available().WithMessage(strings.Join(remark, "; ")).WithObservedGeneration(mg.GetGeneration()))
}

// Unavailable marks mg as not ready, for a reason.
func Unavailable(mg resource.Managed, why string) {
	mg.SetConditions(xpv2.Unavailable().WithMessage(why).WithObservedGeneration(mg.GetGeneration()))
}

// Refuse marks mg as not ready because of err, and returns err. What is on its way out must not be held up by what it does not
// own: then the error is nil, and Observe says that nothing exists.
func Refuse(mg resource.Managed, err error) error {
	if meta.WasDeleted(mg) {
		return nil
	}
	Unavailable(mg, err.Error())
	return err
}
