// SPDX-License-Identifier: Apache-2.0

package members

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/podinputs"
	"github.com/capstan-dev/capstan/function/database/switchover"
)

// Config of the members, and the configuration that all of them apply at run time.
func Config(d *compose.Draft, s *decision.Decision) {
	if s.Identity == "" {
		return
	}
	p, server := podinputs.Pin(s.Cluster, s.Holds), podinputs.Server(s.Cluster, s.Holds)
	server.Pinned = p.Parameters
	files := s.Engine.Files(server, podinputs.MemberFile(s.Cluster))
	d.Add(s.In(names.Config), applycorev1.ConfigMap(s.OwnMembers(), s.Namespace).WithLabels(s.Labels()).WithData(files), s.Side)
	// Capstan owns the annotations; what else members write there is their own.
	labels := s.OwnLabels()
	labels[observev1alpha1.LabelScope] = s.Scope()
	annotations := map[string]string{names.AnnotationConfig: s.Engine.Coordination(server), names.AnnotationPinned: encoding.JSON(p)}
	if id := switchover.Skipped(s.Cluster); id != "" {
		annotations[names.AnnotationSkipped] = id
	}
	d.Add(s.In(names.DCS), applycorev1.ConfigMap(s.Scope()+"-config", s.Namespace).WithLabels(labels).WithAnnotations(annotations), s.Side)
}
