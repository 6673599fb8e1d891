// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Moment, or nil for the latest. The spec was checked.
func Moment(at v1alpha1.Moment) *time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(at))
	if err != nil {
		return nil
	}
	t = t.UTC()
	return &t
}

// Stamp of a text that members wrote, or nil.
func Stamp(text string) *metav1.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: t}
}
