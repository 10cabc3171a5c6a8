# The probe addons. Release flags are those of the addons under test: -O3, NDEBUG, the standard of this Node's headers,
# and for the linker what keeps an addon's own symbols to itself.
#
# Variables: napi_version is the newest Node-API of this Node that the code knows (0: none), core_folder holds the C
# sources of the core module, sqlite_folder the addon's sqlite3.h and sqlite_object its object file ("" without one),
# sqlite_place the place in a page at which its code lies in the addon ("": anywhere).

{
  'variables': {
    'napi_version%': 0,
    'core_folder%': '',
    'sqlite_folder%': '',
    'sqlite_object%': '',
    'sqlite_place%': '',
  },
  'target_defaults': {
    'default_configuration': 'Release',
    'configurations': {
      'Release': {
        'defines!': ['DEBUG', '_DEBUG'],
        'defines': ['NDEBUG'],
        'cflags': ['-O3'],
        'xcode_settings': { 'GCC_OPTIMIZATION_LEVEL': '3' },
      },
    },
    'conditions': [
      ['OS=="linux"', { 'ldflags': ['-Wl,-Bsymbolic', '-Wl,--exclude-libs,ALL'] }],
    ],
  },
  'targets': [
    {
      'target_name': 'boundary',
      'sources': ['v8_dialect.cc'],
      'cflags_cc': ['-std=c++20'],
      'xcode_settings': { 'OTHER_CPLUSPLUSFLAGS': ['-std=c++20', '-stdlib=libc++'] },
    },
  ],
  'conditions': [
    ['napi_version!=0', {
      'targets': [
        {
          'target_name': 'boundary_napi',
          'sources': ['napi_dialect.cc'],
          'defines': ['NAPI_VERSION=<(napi_version)'],
          'cflags_cc': ['-std=c++20', '-fvisibility=hidden', '-fvisibility-inlines-hidden'],
          'xcode_settings': { 'OTHER_CPLUSPLUSFLAGS': ['-std=c++20', '-stdlib=libc++'] },
        },
      ],
    }],
    ['sqlite_object!=""', {
      'targets': [
        {
          'target_name': 'core',
          'sources': ['<(core_folder)/core_addon.c', '<(core_folder)/bench.c'],
          'include_dirs': ['<(core_folder)', '<(sqlite_folder)'],
          'cflags_c': ['-std=c11'],
          'libraries': ['<(sqlite_object)', '-lm'],
          'conditions': [
            ['OS=="linux"', { 'libraries': ['-ldl', '-pthread'] }],
            # The last of the sources, so that the object file comes next.
            ['sqlite_place!=""', { 'sources': ['place.S'], 'defines': ['SQLITE_PLACE=<(sqlite_place)'] }],
          ],
        },
      ],
    }],
  ],
}
