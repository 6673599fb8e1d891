// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/members"
)

// former reports whether the status on a pod is about a container that ended. One that is killed, or whose node is lost, writes
// nothing more; what it wrote stays on the pod until its successor writes. The API server records when a program last wrote an
// annotation, so that no member has to write a time.
//
// A container that is ready speaks for itself: members do not write again what the pod has already.
func former(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		switch {
		case s.Name != container(p):
			continue
		case s.State.Running == nil:
			return true
		case s.Ready:
			return false
		}
		at := wroteAt(p, members.AnnotationStatus)
		return !at.IsZero() && !at.After(s.State.Running.StartedAt.Time)
	}
	return false
}

// wroteAt returns when an annotation was last written according to the API server, in whole seconds; zero when it is not recorded.
func wroteAt(p *corev1.Pod, annotation string) time.Time {
	var last time.Time
	for _, m := range p.ManagedFields {
		if m.Subresource != "" || m.Time == nil || !m.Time.After(last) {
			continue
		}
		var owned struct {
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &owned); err != nil {
			continue
		}
		if _, ok := owned.Metadata.Annotations["f:"+annotation]; ok {
			last = m.Time.Time
		}
	}
	return last
}
