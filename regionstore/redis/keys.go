package redis

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/ration-dev/ration/policy"
)

// keyspace makes the keys of one region. Everything that a caller or an owner
// writes (region, tenant, budget, request id) enters a key as 128 bits of
// SHA-256 in an alphabet without braces or colons, so that no name can escape
// its hash slot, and none can be made to meet another's. The prefix, which an
// operator chooses, may hold neither. Hash tags have fewer bits: who shares one
// by chance shares a slot and no more, since what follows tells them apart.
type keyspace struct {
	prefix, region string
	cluster        bool
}

// tagLength is how many characters, of 6 bits each, a tenant's hash tag has.
const tagLength = 8

// tag is the hash tag of a tenant: all keys of a tenant share a slot, so that
// a decision over several of its budgets is one step.
func (k keyspace) tag(tenant string) string {
	return "{" + k.prefix + ":" + digest('t', k.region, tenant)[:tagLength] + "}"
}

// regionTag is the hash tag of what belongs to the region as a whole.
func (k keyspace) regionTag() string {
	return "{" + k.prefix + ":" + digest('r', k.region, "") + "}"
}

func (k keyspace) row(budget string) string {
	return k.tag(policy.Tenant(budget)) + digest('b', k.region, budget)
}

// answer is where the first answer to a request id is kept: beside the rows of
// the first budget's tenant. Ids of different tenants are different.
func (k keyspace) answer(firstBudget, requestID string) string {
	tenant := policy.Tenant(firstBudget)
	return k.tag(tenant) + ":q:" + digest('q', digest('t', k.region, tenant), requestID)
}

func (k keyspace) inUse() string     { return k.regionTag() + ":used" }
func (k keyspace) leader() string    { return k.regionTag() + ":lead" }
func (k keyspace) processes() string { return k.regionTag() + ":proc" }

// slot is the Cluster's hash slot of a budget's keys; 0 without a Cluster.
func (k keyspace) slot(budget string) uint32 {
	if !k.cluster {
		return 0
	}
	tag := k.tag(policy.Tenant(budget))
	return uint32(crc16(tag[1:len(tag)-1])) % clusterSlots
}

const clusterSlots = 16384

// digest is 128 bits of SHA-256 over a domain, a length-prefixed scope and a
// name, as 22 characters of A-Z a-z 0-9 - and _.
func digest(domain byte, scope, name string) string {
	buf := make([]byte, 0, 128)
	buf = append(buf, domain)
	buf = binary.AppendUvarint(buf, uint64(len(scope)))
	buf = append(buf, scope...)
	buf = append(buf, name...)
	sum := sha256.Sum256(buf)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// crc16 is CRC-16/XMODEM, by which a Cluster maps hash tags to slots.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
