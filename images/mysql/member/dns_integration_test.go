// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"maps"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// resolve the names of pods at an address, as the cluster's DNS does, unless that is down.
func (c *cluster) resolve(address string) {
	c.t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(address, "53"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	c.dns = address
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			if answer, ok := c.answer(query[:n]); ok && !c.dnsDown.Load() {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
}

// answer a query of the DNS.
func (c *cluster) answer(query []byte) ([]byte, bool) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil, false
	}
	q := m.Questions[0]
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true, RCode: dnsmessage.RCodeNameError}
	m.Additionals = nil
	addresses := maps.Clone(c.named)
	if addresses == nil {
		addresses = map[string]string{}
	}
	for _, l := range c.letters {
		id := c.identify(l)
		addresses[id.Pod+"."+c.podsHost()] = id.IP
	}
	if address, ok := addresses[strings.TrimSuffix(q.Name.String(), ".")]; ok {
		m.RCode = dnsmessage.RCodeSuccess
		if q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 5},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()},
			})
		}
	}
	out, err := m.Pack()
	return out, err == nil
}
