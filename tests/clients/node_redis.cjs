// Every method of node-redis' client.bf: node_redis.cjs PORT PROTOCOL TYPES
//
// TYPES: 1 where the server lets modules answer with booleans and maps in RESP3. Elsewhere integers and arrays come, and
// in RESP3 this client takes what comes.

const assert = require('node:assert/strict');
const { createClient, RESP_TYPES } = require('redis');

const [port, protocol, types] = process.argv.slice(2).map(Number);
const asItComes = protocol === 3 && !types;

async function main() {
    const client = createClient({ socket: { port }, RESP: protocol });
    client.on('error', (error) => { throw error; });
    await client.connect();
    const bf = client.bf;
    const yes = asItComes ? 1 : true;
    const no = asItComes ? 0 : false;
    const refused = (call, text) => assert.rejects(call, (error) => error.message.includes(text));

    // reserve
    assert.equal(await bf.reserve('plain', 0.001, 1000), 'OK');
    assert.equal(await bf.reserve('four', 1e-5, 1000, { EXPANSION: 4 }), 'OK');
    assert.equal(await bf.reserve('tiny rate', 1e-9, 1000), 'OK');
    assert.equal(await bf.reserve('fixed', 0.001, 2, { NONSCALING: true }), 'OK');
    await refused(bf.reserve('plain', 0.001, 1000), 'item exists');
    await refused(bf.reserve('both', 0.001, 1000, { EXPANSION: 2, NONSCALING: true }), 'exclude');

    // add, mAdd, exists, mExists
    assert.equal(await bf.add('plain', 'a'), yes);
    assert.equal(await bf.add('plain', 'a'), no);
    assert.deepEqual(await bf.mAdd('plain', ['a', 'b', Buffer.from([0, 255])]), [no, yes, yes]);
    assert.equal(await bf.exists('plain', 'b'), yes);
    assert.equal(await bf.exists('plain', 'z'), no);
    assert.deepEqual(await bf.mExists('plain', ['a', 'z', Buffer.from([0, 255])]), [yes, no, yes]);
    assert.equal(await bf.exists('missing', 'a'), no);
    await client.set('text', 'x');
    await refused(bf.exists('text', 'a'), 'WRONGTYPE');
    assert.deepEqual(await bf.mAdd('fixed', ['a', 'b']), [yes, yes]);
    await refused(bf.add('fixed', 'c'), 'non scaling filter is full');

    // insert, with all its options
    const options = { CAPACITY: 500, ERROR: 0.0001, EXPANSION: 3 };
    assert.deepEqual(await bf.insert('made', ['a', 'b', 'a'], options), [yes, yes, no]);
    assert.deepEqual(await bf.insert('made', ['b', 'c'], { NOCREATE: true }), [no, yes]);
    assert.deepEqual(await bf.insert('single', 'a', { NONSCALING: true }), [yes]);
    await refused(bf.insert('missing', 'a', { NOCREATE: true }), 'not found');

    // info, card
    const names = ['Capacity', 'Size', 'Number of filters', 'Number of items inserted', 'Expansion rate'];
    let info = await bf.info('made');
    if (asItComes) {
        info = Object.fromEntries(names.map((name, i) => [info[2 * i], info[2 * i + 1]]));
    }
    assert.deepEqual(Object.keys(info).sort(), names.sort());
    assert.deepEqual(
        [info.Capacity, info['Number of filters'], info['Number of items inserted'], info['Expansion rate']],
        [500, 1, 3, 3]);
    assert(info.Size > 0);
    await refused(bf.info('missing'), 'not found');
    assert.equal(await bf.card('made'), 3);
    assert.equal(await bf.card('missing'), 0);

    // scanDump, loadChunk: the data are bytes, which this client gives as a Buffer when it is told to.
    const items = Array.from({ length: 20_000 }, (_, i) => `item${i}`);
    await bf.reserve('large', 0.001, 5_000);
    for (let start = 0; start < items.length; start += 500) {
        await bf.mAdd('large', items.slice(start, start + 500));
    }
    const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    const chunks = [];
    for (let iterator = 0; ;) {
        const reply = await bytes.bf.scanDump('large', iterator);
        iterator = reply.iterator;
        if (iterator === 0) break;
        chunks.push(reply);
    }
    assert(chunks.length > 3);
    for (const { iterator, chunk } of chunks) {
        assert.equal(await bf.loadChunk('copy', iterator, chunk), 'OK');
    }
    assert.equal(await bf.card('copy'), await bf.card('large'));
    assert((await bf.mExists('copy', items)).every((found) => found));

    // Decoded as text, which is what the client does otherwise, a chunk is damaged, and refused.
    const text = await bf.scanDump('large', 0);
    await refused(bf.loadChunk('damaged', text.iterator, text.chunk), 'ERR');
    assert.equal(await client.exists('damaged'), 0);

    // in a transaction
    assert.deepEqual(
        await client.multi().bf.reserve('queued', 0.01, 100).bf.add('queued', 'a').bf.mExists('queued', ['a', 'b']).exec(),
        ['OK', yes, [yes, no]]);
    await client.close();
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
