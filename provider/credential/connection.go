// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// dialects of the types of service that have a form of their own. For the others the scheme of the URI is the type.
var dialects = map[string]dialect{
	v1alpha1.TypePostgreSQL: {
		jdbc: "jdbc:postgresql:",
		// Without these a client stays with the first member that answers, and writes fail on a replica.
		uriHosts:  map[string]v1alpha1.OptionValue{"target_session_attrs": "read-write"},
		jdbcHosts: map[string]v1alpha1.OptionValue{"targetServerType": "primary"},
	},
	v1alpha1.TypeMySQL: {
		jdbc: "jdbc:mysql:",
		// Without it the driver takes every member but the first for one that is read only.
		jdbcHosts: map[string]v1alpha1.OptionValue{"failOverReadOnly": "false"},
	},
	v1alpha1.TypeMariaDB:  {jdbc: "jdbc:mariadb:"},
	v1alpha1.TypeMongoDB:  {slash: true},
	v1alpha1.TypeRabbitMQ: {scheme: "amqp"},
}

// A dialect is how clients of one type learn where to connect.
type dialect struct {
	// scheme of the URI. Default: the type.
	scheme string

	// slash comes before options even when no database does. In general it must not: for RabbitMQ it would name a virtual host
	// without a name.
	slash bool

	// jdbc is the start of a JDBC URL, if there is one.
	jdbc string

	// uriHosts and jdbcHosts are options where there are several hosts, unless the Credential has others. Where there is one by
	// nature they are left out.
	uriHosts, jdbcHosts map[string]v1alpha1.OptionValue
}

// binding returns the keys of a connection, but ca.crt.
func binding(c v1alpha1.Connection, password []byte) map[string]string {
	d := dialects[c.Type]
	if d.scheme == "" {
		d.scheme = c.Type
	}

	// Without a host the members stand for it.
	hosts := c.Hosts
	if c.Host != "" && c.Port != nil {
		hosts = []v1alpha1.HostPort{{Host: c.Host, Port: *c.Port}}
	}
	out := map[string]string{
		v1alpha1.KeyType:     c.Type,
		v1alpha1.KeyProvider: c.Provider,
		v1alpha1.KeyDatabase: c.Database,
		v1alpha1.KeyUsername: c.Username,
	}
	if len(hosts) > 0 {
		out[v1alpha1.KeyHost] = string(hosts[0].Host)
		out[v1alpha1.KeyPort] = strconv.Itoa(int(hosts[0].Port))
		out[v1alpha1.KeyURI] = d.uri(c, hosts, password)
		out[v1alpha1.KeyJDBCURL] = d.jdbcURL(c, hosts)
	}
	if len(c.Hosts) > 0 {
		out[v1alpha1.KeyMultiHostURI] = d.uri(c, c.Hosts, password)
	}
	for _, e := range c.Endpoints {
		d.endpoint(out, c, e, password)
	}
	maps.DeleteFunc(out, func(_, v string) bool { return v == "" })
	return out
}

// endpoint adds the keys of another way to the same service.
func (d dialect) endpoint(out map[string]string, c v1alpha1.Connection, e v1alpha1.Endpoint, password []byte) {
	hosts := []v1alpha1.HostPort{{Host: e.Host, Port: e.Port}}
	c.Options, c.JDBCOptions = unchoosing(c.Options, d.uriHosts), unchoosing(c.JDBCOptions, d.jdbcHosts)
	out[e.Name+v1alpha1.SuffixHost] = string(e.Host)
	out[e.Name+v1alpha1.SuffixPort] = strconv.Itoa(int(e.Port))
	out[e.Name+v1alpha1.SuffixURI] = d.uri(c, hosts, password)
	out[e.Name+v1alpha1.SuffixJDBCURL] = d.jdbcURL(c, hosts)
}

// unchoosing options: without those that choose among several hosts.
func unchoosing(options, several map[string]v1alpha1.OptionValue) map[string]v1alpha1.OptionValue {
	out := maps.Clone(options)
	maps.DeleteFunc(out, func(name string, _ v1alpha1.OptionValue) bool {
		_, chooses := several[name]
		return chooses
	})
	return out
}

// uri of RFC 3986, except the commas between several hosts, which is how libpq, MySQL and MongoDB have it.
func (d dialect) uri(c v1alpha1.Connection, hosts []v1alpha1.HostPort, password []byte) string {
	path, query := "", query(c.Options, d.uriHosts, hosts)
	if c.Database != "" || d.slash && query != "" {
		path = "/" + escape(c.Database)
	}
	return d.scheme + "://" + escape(c.Username) + ":" + escape(string(password)) + "@" + authority(hosts) + path + query
}

// jdbcURL has neither user nor password: drivers take both as properties of their own, from the keys username and password, while
// URLs end up in logs, metrics and error messages of connection pools.
func (d dialect) jdbcURL(c v1alpha1.Connection, hosts []v1alpha1.HostPort) string {
	if d.jdbc == "" {
		return ""
	}

	// The drivers want the slash even when no database follows.
	return d.jdbc + "//" + authority(hosts) + "/" + escape(c.Database) + query(c.JDBCOptions, d.jdbcHosts, hosts)
}

func authority(hosts []v1alpha1.HostPort) string {
	all := make([]string, len(hosts))
	for i, h := range hosts {
		all[i] = net.JoinHostPort(string(h.Host), strconv.Itoa(int(h.Port)))
	}
	return strings.Join(all, ",")
}

// query of the options, sorted by name, with those for several hosts.
func query(options, several map[string]v1alpha1.OptionValue, hosts []v1alpha1.HostPort) string {
	all := map[string]v1alpha1.OptionValue{}
	if len(hosts) > 1 {
		maps.Copy(all, several)
	}
	maps.Copy(all, options)
	if len(all) == 0 {
		return ""
	}
	pairs := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, escape(name)+"="+escape(string(all[name])))
	}
	return "?" + strings.Join(pairs, "&")
}

// escape all but what RFC 3986 calls unreserved. The functions of net/url leave more as it is, or write a space as +, which libpq
// takes for a plus.
func escape(text string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; strings.IndexByte(lower+upper+digits+punctuation, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
