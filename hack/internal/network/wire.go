// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/netns"
)

const bridge = "br0"

// WireControlPlane makes the control plane's namespace the switch of the cluster. Nothing connects it to the machine.
func WireControlPlane(ctx context.Context, pid int) error {
	return ip(ctx, pid, []string{
		"link set lo up",
		"link add " + bridge + " type bridge",
		"addr add " + ControlPlane + "/24 dev " + bridge,
		"link set " + bridge + " up",
	})
}

// WireNode plugs a new node into the switch. The control plane reaches pods directly and Services through the first
// node; nodes reach each other's pods directly. The default route leads to the control plane, which forwards nothing:
// without a route a process on the node could not even try to connect to a Service.
func WireNode(ctx context.Context, controlPlane, pid int, node Node, all []Node) error {
	addr := node.Address.String()
	// The cable of a node that has just died goes with it, but the kernel takes its time.
	_ = ip(ctx, controlPlane, []string{"link del " + port(node.Letter)})
	if err := ip(ctx, controlPlane, []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", port(node.Letter), pid),
		fmt.Sprintf("link set %s master %s up", port(node.Letter), bridge),
		fmt.Sprintf("route replace %s via %s", node.Pods, addr),
	}); err != nil {
		return err
	}
	if node == all[0] {
		if err := ip(ctx, controlPlane, []string{fmt.Sprintf("route replace %s via %s", Services, addr)}); err != nil {
			return err
		}
	}
	cmds := []string{
		"link set lo up",
		"addr add " + addr + "/24 dev eth0",
		"link set eth0 up",
		"route add default via " + ControlPlane,
	}
	for _, other := range all {
		if other != node {
			cmds = append(cmds, fmt.Sprintf("route add %s via %s", other.Pods, other.Address))
		}
	}
	return ip(ctx, pid, cmds)
}

// Cut takes the node's cable out of the switch. The node itself keeps running and sees its carrier go.
func Cut(ctx context.Context, controlPlane int, letter string) error {
	return ip(ctx, controlPlane, []string{"link set " + port(letter) + " down"})
}

// Rejoin puts the cable back.
func Rejoin(ctx context.Context, controlPlane int, letter string) error {
	return ip(ctx, controlPlane, []string{"link set " + port(letter) + " up"})
}

// Block has the control plane, and so the API server, answer an address no more. Pods reach each other by other ways.
func Block(ctx context.Context, controlPlane int, address netip.Addr) error {
	return ip(ctx, controlPlane, []string{fmt.Sprintf("route replace blackhole %s/32", address)})
}

// Unblock an address that is blocked.
func Unblock(ctx context.Context, controlPlane int, address netip.Addr) error {
	return ip(ctx, controlPlane, []string{fmt.Sprintf("route del blackhole %s/32", address)})
}

// IsCut reports whether the node's cable is out.
func IsCut(ctx context.Context, controlPlane int, letter string) (bool, error) {
	var out []byte
	err := netns.Do(netns.Of(controlPlane), func() error {
		var err error
		out, err = exec.CommandContext(ctx, "ip", "-o", "link", "show", "dev", port(letter)).Output()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot see the cable of node %q: %w", letter, err)
	}
	flags, _, _ := bytes.Cut(out, []byte(">"))
	_, flags, _ = bytes.Cut(flags, []byte("<"))
	for flag := range bytes.SplitSeq(flags, []byte(",")) {
		if string(flag) == "UP" {
			return false, nil
		}
	}
	return true, nil
}

func port(letter string) string { return "node-" + letter }

// ip runs commands of iproute2 in the namespace of a process, all in one call.
func ip(ctx context.Context, pid int, commands []string) error {
	return netns.Do(netns.Of(pid), func() error {
		cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot set up the network of process %d: %w: %s", pid, err, bytes.TrimSpace(out))
		}
		return nil
	})
}
