// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/capstan-dev/capstan/test/container"
)

// Each member has a network of its own, as a pod has: a server that finds the address of another one on its own machine takes it for itself.

// ip runs the program of this name.
func (c *cluster) ip(args ...string) {
	c.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		c.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// link is the name of the bridge that the members are at, and what the names of their interfaces begin with.
func (c *cluster) link() string { return fmt.Sprintf("cm%d-%d", os.Getpid()%100000, c.sub) }

// netns is the file of a member's network namespace.
func (c *cluster) netns(letter string) string { return "/run/netns/" + c.link() + letter }

// bridge that all members are at, and the machine.
func (c *cluster) bridge() {
	c.t.Helper()
	c.ip("link", "add", c.link(), "type", "bridge")
	link := c.link()
	c.t.Cleanup(func() { _ = exec.Command("ip", "link", "del", link).Run() })
	c.ip("address", "add", fmt.Sprintf("10.%d.%d.1/24", c.net, c.sub), "dev", link)
	c.ip("link", "set", link, "up")
	c.resolve(fmt.Sprintf("10.%d.%d.1", c.net, c.sub))
}

// mac is the address of a member's interface.
func (c *cluster) mac(letter string) string {
	return fmt.Sprintf("02:00:00:00:%02x:%02x", c.sub%256, letter[0])
}

// network of a member, in which the API server is where it is on the machine.
func (c *cluster) network(letter string) {
	c.t.Helper()
	name := c.link() + letter
	c.ip("netns", "add", name)
	c.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	c.ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "address", c.mac(letter), "netns", name)
	c.ip("link", "set", name, "master", c.link(), "up")
	c.ip("-n", name, "address", "add", c.identify(letter).IP+"/24", "dev", "eth0")
	c.ip("-n", name, "link", "set", "eth0", "up")
	c.ip("-n", name, "link", "set", "lo", "up")
	c.offer(letter, c.api)
}

// lose the node of a member: its power, what is on it, and the cluster's DNS with it. What others send there is dropped, and nothing says so.
func (c *cluster) lose(letter string) {
	c.t.Helper()
	for _, l := range c.letters {
		if l != letter {
			// Without it a kernel that finds nobody at the address would say that there is no route.
			c.ip("-n", c.link()+l, "neigh", "replace", c.identify(letter).IP, "lladdr", c.mac(letter), "dev", "eth0", "nud", "permanent")
		}
	}
	c.dnsDown.Store(true)
	c.ip("link", "set", c.link()+letter, "down")
	c.running(letter).Kill()
}

// bring a node back that was lost, and its member.
func (c *cluster) bring(letter string) {
	c.t.Helper()
	c.ip("link", "set", c.link()+letter, "up")
	c.dnsDown.Store(false)
	c.start(letter)
}

// offer a server of the machine in the network of a member, at the same address.
func (c *cluster) offer(letter, address string) {
	c.t.Helper()
	l, err := listenIn(c.netns(letter), address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go c.forward(letter, from, address)
		}
	}()
}

// forward a connection of a member to a server of the machine, and to the API server only while that is up, and the member is not cut off.
func (c *cluster) forward(letter string, from net.Conn, address string) {
	defer func() { _ = from.Close() }()
	if _, cut := c.cutOff.Load(letter); address == c.api && (cut || c.apiDown.Load()) {
		return
	}
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	if address == c.api {
		c.mu.Lock()
		c.forwarded = append(c.forwarded, from, to)
		c.mu.Unlock()
	}
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// setAPI lets members reach the API server or not. Connections that there are break.
func (c *cluster) setAPI(up bool) {
	c.apiDown.Store(!up)
	c.breakAPI()
}

// breakAPI ends all connections to the API server. Members make others, if they may.
func (c *cluster) breakAPI() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.forwarded {
		_ = conn.Close()
	}
	c.forwarded = nil
}

// part two members: what one sends to the other is dropped, in both directions, and nothing says so. Clients still reach both.
func (c *cluster) part(one, two string) {
	c.t.Helper()
	for _, p := range [][2]string{{one, two}, {two, one}} {
		// Nothing on the bridge has this address.
		c.ip("-n", c.link()+p[0], "neigh", "replace", c.identify(p[1]).IP, "lladdr", "02:00:00:00:ff:ff", "dev", "eth0", "nud", "permanent")
	}
}

// unite two members that were parted.
func (c *cluster) unite(one, two string) {
	c.t.Helper()
	for _, p := range [][2]string{{one, two}, {two, one}} {
		c.ip("-n", c.link()+p[0], "neigh", "delete", c.identify(p[1]).IP, "dev", "eth0")
	}
}

// cut a member off from all others and from the API server. Clients still reach it.
func (c *cluster) cut(letter string) {
	c.t.Helper()
	c.cutOff.Store(letter, true)
	c.breakAPI()
	for _, l := range c.letters {
		if l != letter {
			c.part(letter, l)
		}
	}
}

// rejoin a member that was cut off.
func (c *cluster) rejoin(letter string) {
	c.t.Helper()
	for _, l := range c.letters {
		if l != letter {
			c.unite(letter, l)
		}
	}
	c.cutOff.Delete(letter)
}

// listenIn a network namespace.
func listenIn(netns, address string) (net.Listener, error) {
	type result struct {
		l   net.Listener
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := container.EnterNetwork(netns)
		var l net.Listener
		if err == nil {
			l, err = net.Listen("tcp", address)
		}
		done <- result{l, err}
	}()
	r := <-done
	return r.l, r.err
}
