// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"net"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/podask"
)

// An ask for the State of a coordinator in a pod. An error is a refusal, or says nothing about the coordinator.
type ask func(ctx context.Context, p *corev1.Pod, number int32) (*crew.State, error)

// newAsker asks over HTTP. Only a State for this run counts.
func newAsker(dialer func(net.Dialer) outside.Dial) ask {
	return podask.Parsed(podask.New(dialer), parse)
}
