// kafkajs: write ADDRESS TOPIC CODEC < records; a JSON record a line. kafkajs
// reads in groups only, so reading comes with groups.
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')
const lines = require('readline').createInterface({ input: process.stdin })

const [, , verb, address, topic, codec] = process.argv
if (verb !== 'write') throw new Error(`${verb}: kafkajs only writes here`)
const raw = s => (s === null ? null : Buffer.from(s, 'base64'))

async function main() {
  const messages = []
  for await (const line of lines) {
    const r = JSON.parse(line)
    const headers = {}
    for (const h of r.headers || []) headers[h.key] = [...(headers[h.key] || []), raw(h.value)]
    messages.push({ key: raw(r.key), value: raw(r.value), headers, partition: 0 })
  }
  const kafka = new Kafka({ clientId: 'kafkajs', brokers: [address], logLevel: logLevel.ERROR })
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  for (const m of messages) {
    await producer.send({ topic, messages: [m], acks: -1, compression: codec === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None })
  }
  await producer.disconnect()
}

main().catch(e => { console.error(e); process.exit(1) })
